// Virtual time as a Backend.
#pragma once

#include <memory>
#include <optional>

#include "core/device/backend.hpp"
#include "kernels/sim/sim_device.hpp"

namespace dstune::sim {

/// A device with as much memory as the accelerators that people tune for, one for each process.
DeviceInfo describe_device(const Placement& placement = {});

std::unique_ptr<Backend> make_backend(const Placement& placement);

/// Keeps nothing: every experiment's clock starts at 0, on all of its ranks.
class SimBackend final : public Backend {
 public:
  Device& device(const DeviceShare& share) override { return device_.emplace(share.memory_limit); }
  std::unique_ptr<Collectives> collectives(Group& group, const HostCollectives& over_host) override;

 private:
  std::optional<SimDevice> device_;
};

}  // namespace dstune::sim
