// The averaged gradients of the tensors that touch a rank's partitions (stages 1 and 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/train/device.hpp"
#include "core/train/zero/flat_layout.hpp"

namespace dstune {

/// One buffer for the gradients of this micro-step, and the running sum of the earlier ones. Holds
/// whole tensors, although only the owned part of a boundary tensor is ever used: DeepSpeed's
/// partition buffer does too.
class PartitionGradients {
 public:
  PartitionGradients(Device& device, DType dtype, const ModelParameters& parameters,
                     const std::vector<FlatLayout>& layouts, int rank);

  bool holds(std::size_t tensor) const { return offsets_[tensor] >= 0; }
  /// A copy of an averaged gradient; the first one of a micro-step allocates the buffer.
  void take(std::size_t tensor, Tensor gradient);
  /// Adds the owned parts of this micro-step to the sum, or makes them the sum.
  void accumulate();
  /// The sum's values of a range.
  Tensor sum(const OwnedRange& range) const;
  void drop_sum() { sum_.reset(); }

  const std::vector<OwnedRange>& ranges(std::size_t group) const { return ranges_[group]; }

 private:
  Tensor part(const Buffer& buffer, const OwnedRange& range) const;

  Device& device_;
  DType dtype_;
  std::vector<std::vector<OwnedRange>> ranges_;  // by group
  std::vector<std::int64_t> offsets_;            // by tensor; -1: not held
  std::int64_t numel_ = 0;
  Buffer current_;
  Buffer sum_;
};

}  // namespace dstune
