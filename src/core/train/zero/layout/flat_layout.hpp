// Where the tensors of one parameter group lie in its flat buffer, and who owns which part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/model_parameters.hpp"
#include "core/train/zero/layout/parameter_groups.hpp"

namespace dstune {

/// A part of one tensor that belongs to one rank.
struct OwnedRange {
  std::size_t tensor = 0;             ///< registration index
  std::int64_t tensor_offset = 0;     ///< first element within the tensor
  std::int64_t partition_offset = 0;  ///< first element within the owner's partition
  std::int64_t numel = 0;
};

/// The flat buffer of stages 1 and 2 (docs/deepspeed-step.md, "Layout of stages 1 and 2"): the
/// group's tensors one after the other, padded to a multiple of 2 N elements and cut into N equal
/// partitions.
class FlatLayout {
 public:
  /// @param round_robin  tensors are dealt out to the ranks instead of laid out in registration
  /// order
  FlatLayout(const ParameterGroup& group, const ModelParameters& parameters, int group_size,
             bool round_robin);

  const std::vector<std::size_t>& order() const noexcept { return order_; }
  std::int64_t offset(std::size_t tensor) const { return offsets_.at(tensor); }
  std::int64_t numel(std::size_t tensor) const { return numels_.at(tensor); }
  std::int64_t numel() const noexcept { return numel_; }  ///< without padding
  std::int64_t padded() const noexcept { return partition_ * size_; }
  std::int64_t partition() const noexcept { return partition_; }  ///< elements per rank

  /// The parts of tensors that `rank` owns, in the order of their places in its partition.
  std::vector<OwnedRange> owned_by(int rank) const;

  /// A piece of `tensor` between the borders of partitions.
  struct Piece {
    int owner = 0;
    std::int64_t numel = 0;
    int owners = 1;  ///< number of ranks, from `owner` on, that have so many elements each
  };
  std::vector<Piece> pieces(std::size_t tensor) const;

 private:
  std::vector<std::size_t> order_;
  std::vector<std::int64_t> offsets_;  // by registration index; -1 for tensors of other groups
  std::vector<std::int64_t> numels_;
  std::int64_t numel_ = 0;
  std::int64_t partition_ = 0;
  int size_;
};

/// One layout per parameter group.
class FlatLayouts {
 public:
  /// @param round_robin  see FlatLayout
  FlatLayouts(const std::vector<ParameterGroup>& groups, const ModelParameters& parameters,
              int group_size, bool round_robin);

  std::size_t size() const noexcept { return layouts_.size(); }
  const FlatLayout& operator[](std::size_t group) const { return layouts_[group]; }
  std::size_t tensor_count() const noexcept { return group_of_.size(); }  ///< of the model
  std::size_t group_of(std::size_t tensor) const { return group_of_.at(tensor); }
  const FlatLayout& of(std::size_t tensor) const { return layouts_[group_of(tensor)]; }

 private:
  std::vector<FlatLayout> layouts_;
  std::vector<std::size_t> group_of_;  // by tensor
};

}  // namespace dstune
