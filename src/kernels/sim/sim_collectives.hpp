// Collectives that cost virtual time.
#pragma once

#include "core/device/dry/dry_collectives.hpp"
#include "kernels/sim/sim_device.hpp"

namespace dstune::sim {

/// Round numbers in the region of a 200 Gbit/s network; not a model of any.
struct SimNetwork {
  Seconds latency = 5e-6;     ///< of one step of the ring (alpha)
  double bytes_per_s = 25e9;  ///< one rank sends (1 / beta)
};

/// The ring's cost on the device's clock: steps * latency + wire_bytes() / bytes_per_s, where an
/// all-reduce of N ranks has 2 (N-1) steps and every other kind N-1. Nothing with one rank. All
/// ranks of a group do the same, so their clocks agree without a message.
class SimCollectives final : public DryCollectives {
 public:
  /// `device` must outlive this.
  /// @throws std::invalid_argument  unless 0 <= rank < size
  SimCollectives(SimDevice& device, int rank, int size, SimNetwork network = {})
      : DryCollectives(device, rank, size), sim_(&device), network_(network) {}

 protected:
  void account(CollectiveKind kind, Bytes bytes) override;

 private:
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override;

  SimDevice* sim_;
  SimNetwork network_;
};

}  // namespace dstune::sim
