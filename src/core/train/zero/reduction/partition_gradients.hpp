// The averaged gradients of the tensors that touch a rank's partitions (stages 1 and 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/device.hpp"
#include "core/train/zero/layout/flat_layout.hpp"
#include "core/train/zero/reduction/gradient_bucket.hpp"

namespace dstune {

/// The gradients of this micro-step, and the running sum of the earlier ones. It holds whole
/// tensors as DeepSpeed does, although only the owned part of a boundary tensor is ever used.
class PartitionGradients {
 public:
  /// @param dtype       of the gradients of a micro-step
  /// @param contiguous  gradients are copied into one buffer; otherwise they stay tensors of their
  /// own
  PartitionGradients(Device& device, DType dtype, const ModelParameters& parameters,
                     const FlatLayouts& layouts, int rank, bool contiguous);

  bool holds(std::size_t tensor) const { return offsets_[tensor] >= 0; }
  /// Takes an averaged gradient. The first one of a micro-step allocates the buffer.
  void take(GradientBucket::Entry& entry);
  /// Adds this micro-step's gradients to the sum, or makes them the sum.
  void accumulate();
  /// Writes this micro-step's gradients into `sums` of another type, by tensor; those of the sums
  /// that it holds become the sum.
  void accumulate_into(std::vector<Buffer>& sums, DType dtype);

  // The functions below are about the sum.
  const std::vector<OwnedRange>& ranges(std::size_t group) const { return ranges_[group]; }
  Tensor sum(const OwnedRange& range) const;
  /// Searches the gradients of all groups. Local.
  void find_overflow(Tensor flag) const;
  /// Adds the squares of one group's ranges. Local.
  void add_squares(std::size_t group, Tensor squares) const;
  /// A group's partition of `numel` elements in fp32, made by way of its own type; category
  /// temporaries.
  Buffer flattened(std::size_t group, std::int64_t numel) const;
  void drop_sum() { sum_ = {}; }

 private:
  struct Set {
    Buffer together;          // contiguous: all of them, at offsets_
    std::vector<Buffer> own;  // by tensor
    DType dtype = DType::fp32;
    bool filled = false;
  };

  Tensor whole(const Set& set, std::size_t tensor) const;
  void start();

  Device& device_;
  DType dtype_;
  bool contiguous_;
  std::vector<std::vector<OwnedRange>> ranges_;  // by group
  std::vector<std::int64_t> offsets_;            // by tensor; -1: it is not held
  std::vector<std::int64_t> numels_;             // by tensor
  std::int64_t numel_ = 0;
  Set current_;
  Set sum_;
};

}  // namespace dstune
