#include "kernels/sim/sim_backend.hpp"

#include <stdexcept>

#include "kernels/sim/sim_collectives.hpp"

namespace dstune::sim {

DeviceInfo describe_device(const Placement& /*placement*/) {
  constexpr Bytes kMemory = Bytes{80} << 30U;
  DeviceInfo info{"sim", "virtual time", kMemory, kMemory, false, ""};
  info.trains_in_bf16 = true;
  return info;
}

std::unique_ptr<Backend> make_backend(const Placement& /*placement*/) {
  return std::make_unique<SimBackend>();
}

std::unique_ptr<Collectives> SimBackend::collectives(Group& group,
                                                     const HostCollectives& /*over_host*/) {
  if (!device_) throw std::logic_error("SimBackend: collectives() before device()");
  return std::make_unique<SimCollectives>(*device_, group.rank(), group.size());
}

}  // namespace dstune::sim
