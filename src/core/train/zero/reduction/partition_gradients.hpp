// The averaged gradients of the tensors that touch a rank's partitions (stages 1 and 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/device.hpp"
#include "core/train/zero/layout/flat_layout.hpp"
#include "core/train/zero/reduction/owned_gradients.hpp"

namespace dstune {

/// The gradients of this micro-step, and the running sum of the earlier ones. It holds whole
/// tensors as DeepSpeed does, although only the owned part of a boundary tensor is ever used.
class PartitionGradients final : public OwnedGradients {
 public:
  /// @param dtype       of the gradients of a micro-step
  /// @param layouts     must outlive this
  /// @param contiguous  gradients are copied into one buffer; otherwise they stay tensors of their
  /// own
  PartitionGradients(Device& device, DType dtype, const ModelParameters& parameters,
                     const FlatLayouts& layouts, int rank, bool contiguous);

  bool holds(std::size_t tensor) const { return offsets_[tensor] >= 0; }
  /// The first one of a micro-step allocates the buffer.
  void take(GradientBucket::Entry& entry) override;
  /// Adds this micro-step's gradients to the sum, or makes them the sum.
  void end_micro_step(bool boundary) override;
  /// Writes this micro-step's gradients into `sums` of another type, by tensor; those of the sums
  /// that it holds become the sum.
  void accumulate_into(std::vector<Buffer>& sums, DType dtype);

  void find_overflow(Tensor flag) const override;
  void add_squares(std::size_t group, Tensor squares) const override;
  /// Made by way of the sum's own type; category temporaries. The sum is dropped with the last
  /// group.
  Buffer flattened(std::size_t group) override;
  void drop() override { sum_ = {}; }

 private:
  struct Set {
    Buffer together;          // contiguous: all of them, at offsets_
    std::vector<Buffer> own;  // by tensor
    DType dtype = DType::fp32;
    bool filled = false;
  };

  Tensor whole(const Set& set, std::size_t tensor) const;
  Tensor sum(const OwnedRange& range) const;
  Tensor flatten(std::size_t group, Tensor all) const;
  void start();

  Device& device_;
  const FlatLayouts& layouts_;
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
