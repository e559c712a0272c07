// A device with a virtual clock: the same times on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "core/device/dry_device.hpp"

namespace dstune::sim {

/// Round numbers in the region of a data-centre GPU; not a model of any.
struct SimSpeed {
  double flops_per_s = 10e12;  ///< any dtype
  double bytes_per_s = 1e12;   ///< device memory, read + write
  Seconds latency = 5e-6;      ///< of one operation
};

/// Computes nothing (see DryDevice) and moves clocks instead: one of the host and one per stream.
/// An operation begins when the host has come to it and its stream is done with what it holds, and
/// takes latency + max(FLOPs / flops_per_s, traffic / bytes_per_s). The host takes the time of
/// spend_host_time(), and goes on without waiting for the device, as a GPU's does.
class SimDevice final : public DryDevice {
 public:
  explicit SimDevice(Bytes memory_limit, SimSpeed speed = {})
      : DryDevice(memory_limit), speed_(speed) {}

  std::string name() const override { return "sim"; }
  bool overlaps() const override { return true; }
  Seconds now() const override { return host_; }
  bool has_passed(const Event& event) const override { return event.time <= host_; }
  void spend_host_time(Seconds time) override { host_ += time; }

  /// Keeps the current stream busy for `time`.
  void advance(Seconds time);

 protected:
  void account(const Work& work) override;

 private:
  Seconds& clock(Stream stream) { return clocks_[static_cast<std::size_t>(stream)]; }
  void do_record(Stream stream, Event& event) override;
  void do_wait(Stream stream, const Event& event) override;
  void do_host_wait(const Event& event) override;
  void do_synchronize() override;

  SimSpeed speed_;
  Seconds host_ = 0;
  std::array<Seconds, kStreams> clocks_{};
};

}  // namespace dstune::sim
