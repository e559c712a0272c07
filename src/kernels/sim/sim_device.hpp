// A device with a virtual clock: the same times on every machine.
#pragma once

#include <string>
#include <utility>

#include "core/device/dry/clocked_device.hpp"
#include "core/device/rates/host_rates.hpp"

namespace dstune::sim {

/// Round numbers in the region of a data-centre GPU; not a model of any.
struct SimSpeed {
  double flops_per_s = 10e12;  ///< any dtype
  double bytes_per_s = 1e12;   ///< device memory, read + write
  Seconds latency = 5e-6;      ///< of one operation
  HostRates host = {};
};

/// Operations take latency + max(FLOPs / flops_per_s, traffic / bytes_per_s) on a ClockedDevice
/// whose streams overlap; the host takes the time of spend_host_time().
class SimDevice final : public ClockedDevice {
 public:
  explicit SimDevice(Bytes memory_limit, SimSpeed speed = {})
      : ClockedDevice(memory_limit), speed_(std::move(speed)) {}

  std::string name() const override { return "sim"; }
  bool overlaps() const override { return true; }
  void spend_host_time(Seconds time) override { advance_host(time); }

 protected:
  void account(const Work& work) override;
  void account_on_host(const Work& work) override { advance_host(speed_.host.time_of_pass(work)); }

 private:
  void do_transfer(const HostTransfer& copy) override { advance(speed_.host.time_of(copy)); }
  Seconds time_on_drive(const DriveTransfer& transfer) override {
    return speed_.host.time_of(transfer);
  }

  SimSpeed speed_;
};

}  // namespace dstune::sim
