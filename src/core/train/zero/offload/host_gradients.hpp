// Averaged gradients on their way from the device to the host's memory (stages 1 and 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/scalar.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/zero/layout/flat_layout.hpp"
#include "core/train/zero/offload/host_partition.hpp"
#include "core/train/zero/reduction/gradient_bucket.hpp"
#include "core/train/zero/reduction/partition_sums.hpp"

namespace dstune {

/// The gradients of the tensors that touch this rank's partition (docs/offload.md, "A step of
/// stages 1 and 2"). Sums over micro-steps live in the host's memory as whole tensors of the
/// model's type, and come back to the device to be added to; sums in fp32 stay on the device. In
/// the last micro-step the host reads of each tensor whether it has inf or NaN, and the owned part
/// goes down in fp32.
class HostGradients {
 public:
  struct OnDevice {
    std::int64_t largest = 0;       ///< elements of the largest trained parameter
    PartitionSums* sums = nullptr;  ///< null: sums are not in fp32; must outlive this
  };
  /// @param partition  takes the gradients of the last micro-step; it must outlive this
  HostGradients(Device& device, const StepConfig& config, const FlatLayouts& layouts, int rank,
                const OnDevice& on_device, HostPartition& partition);

  /// @param index     of the micro-step
  /// @param boundary  it is the last one
  void begin_micro_step(std::int64_t index, bool boundary) {
    micro_step_ = index;
    boundary_ = boundary;
  }
  /// Takes an averaged gradient, on the current stream. It may be given back afterwards, in the
  /// order of that stream.
  void take(const GradientBucket::Entry& entry);
  /// Makes the host wait for the copies that may still run.
  void await_copies();

  // The functions below are about the last micro-step.
  bool has_overflow() const noexcept { return has_overflow_; }
  void forget_overflow() noexcept { has_overflow_ = false; }
  /// The sum of the squares of a group's owned parts, of which the host reads one after the other.
  double squares(std::size_t group) const;

 private:
  /// A tensor that is held.
  struct Held {
    std::size_t group = 0;
    OwnedRange range;
    std::unique_ptr<Scalar> squares;
    Buffer sum;  // none until the first micro-step that is not the last one
  };

  void accumulate(Held& held, Tensor gradient);
  void finish(const Held& held, Tensor own, Tensor searched);
  void send(const Held& held, Tensor gradient);
  void look_for_overflow(Tensor gradient);

  Device& device_;
  DType dtype_;
  PartitionSums* sums_;
  bool sums_on_host_;
  HostPartition& partition_;
  std::vector<Held> held_;
  std::vector<std::optional<std::size_t>> place_of_;  // in held_, by tensor
  Buffer returned_;                                   // where a sum comes back to the device
  Scalar flag_;
  std::optional<Event> copied_;  // the end of the last copy that the host has not waited for
  std::int64_t micro_step_ = 0;
  bool boundary_ = true;
  bool has_overflow_ = false;
};

}  // namespace dstune
