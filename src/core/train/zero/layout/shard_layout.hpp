// Stage 3: where the shards of all tensors lie on one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/model_parameters.hpp"
#include "core/train/zero/layout/parameter_groups.hpp"

namespace dstune {

/// The tensors that the optimizer steps together: consecutive ones of a parameter group, until
/// their shards reach sub_group_size elements.
struct SubGroup {
  std::vector<std::size_t> tensors;
  double weight_decay = 0;
  std::int64_t offset = 0;  ///< the first element of its first shard in the rank's buffer
  std::int64_t numel = 0;   ///< the elements of its shards
};

/// Every tensor is cut into N shards of ceil(numel / N) elements (docs/deepspeed-step.md, "Layout
/// of stage 3"); the last shards may be partly or wholly padding. A rank's shards lie one after the
/// other, by sub-group. Behind them lie the shards of frozen tensors, which are in no group and are
/// never stepped.
class ShardLayout {
 public:
  ShardLayout(const std::vector<ParameterGroup>& groups, const ModelParameters& parameters,
              int group_size, std::int64_t sub_group_size);

  const std::vector<SubGroup>& sub_groups() const noexcept { return sub_groups_; }
  /// Elements of the largest sub-group; 0 if nothing is trained.
  std::int64_t largest_sub_group() const noexcept;
  std::int64_t numel() const noexcept { return numel_; }  ///< elements of a rank's stepped shards
  std::int64_t held() const noexcept { return held_; }    ///< elements of all its shards
  std::size_t tensor_count() const noexcept { return numels_.size(); }
  std::int64_t numel(std::size_t tensor) const { return numels_.at(tensor); }  ///< not sharded
  std::int64_t offset(std::size_t tensor) const { return offsets_.at(tensor); }
  std::int64_t shard(std::size_t tensor) const { return shards_.at(tensor); }  ///< elements
  /// The elements of `rank`'s shard that are not padding.
  std::int64_t filled(std::size_t tensor, int rank) const;

 private:
  std::vector<SubGroup> sub_groups_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t> shards_;
  std::vector<std::int64_t> numels_;
  std::int64_t numel_ = 0;
  std::int64_t held_ = 0;
};

}  // namespace dstune
