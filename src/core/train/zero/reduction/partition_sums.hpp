// Sums of averaged gradients in fp32, in a buffer of the rank's partition (stages 1 and 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/device/device.hpp"
#include "core/train/zero/layout/flat_layout.hpp"
#include "core/train/zero/reduction/owned_gradients.hpp"

namespace dstune {

/// What DeepSpeed calls a compact partition buffer: for each parameter group 4 bytes per element of
/// the partition, from the first average of a step that touches it until its update, which takes
/// it as it is. An average is added as it comes out of its collective, in the type of
/// communication; the buckets keep the model's type.
class PartitionSums final : public OwnedGradients {
 public:
  /// @param layouts  must outlive this
  PartitionSums(Device& device, const FlatLayouts& layouts, int rank);

  /// What this rank owns of a tensor; none: nothing.
  const std::optional<OwnedRange>& range_of(std::size_t tensor) const { return ranges_[tensor]; }
  /// The sum of what this rank owns of a tensor, which is something. The first of a group makes the
  /// group's buffer, on the current stream.
  Tensor sum_of(std::size_t tensor);
  /// Adds what this rank owns of the average of `tensor` to its sum.
  void add(std::size_t tensor, Tensor average);

  /// Does nothing: averages are added as they come.
  void take(GradientBucket::Entry&) override {}
  /// In the last micro-step groups without a gradient get their buffers, too.
  void end_micro_step(bool boundary) override;
  void find_overflow(Tensor flag) const override;
  void add_squares(std::size_t group, Tensor squares) const override;
  Buffer flattened(std::size_t group) override;
  void drop() override;
  /// Frees the buffer of one group.
  void drop(std::size_t group) { sums_[group].reset(); }

 private:
  void ensure(std::size_t group);
  Tensor part(std::size_t group, const OwnedRange& range) const {
    return sums_[group].tensor(DType::fp32).slice(range.partition_offset, range.numel);
  }

  Device& device_;
  const FlatLayouts& layouts_;
  std::vector<Buffer> sums_;                       // by group
  std::vector<std::vector<OwnedRange>> of_group_;  // by group
  std::vector<std::optional<OwnedRange>> ranges_;  // by tensor
};

}  // namespace dstune
