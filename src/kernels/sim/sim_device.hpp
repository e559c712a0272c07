// A device with a virtual clock: the same times on every machine.
#pragma once

#include <string>

#include "core/train/dry_device.hpp"

namespace dstune::sim {

/// Round numbers in the region of a data-centre GPU; not a model of any.
struct SimSpeed {
  double flops_per_s = 10e12;  ///< any dtype
  double bytes_per_s = 1e12;   ///< device memory, read + write
  Seconds latency = 5e-6;      ///< of one operation
};

/// Computes nothing (see DryDevice) and moves its clock instead: every operation costs
/// latency + max(FLOPs / flops_per_s, traffic / bytes_per_s). All streams share the one clock.
class SimDevice final : public DryDevice {
 public:
  explicit SimDevice(Bytes memory_limit, SimSpeed speed = {})
      : DryDevice(memory_limit), speed_(speed) {}

  std::string name() const override { return "sim"; }
  Seconds now() const override { return clock_; }
  void spend_host_time(Seconds time) override { advance(time); }

  /// Lets `time` pass: for what the device waits for beside its own operations.
  void advance(Seconds time) { clock_ += time; }

 protected:
  void account(double flops, Bytes traffic) override;

 private:
  SimSpeed speed_;
  Seconds clock_ = 0;
};

}  // namespace dstune::sim
