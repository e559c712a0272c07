#include "kernels/cpu/cpu_backend.hpp"

#include <stdexcept>

#include "kernels/cpu/blas.hpp"

namespace dstune::cpu {

Device& CpuBackend::device(const DeviceShare& share) {
  set_threads(share.threads);
  if (!device_ || device_->memory().limit() != share.memory_limit) {
    device_.emplace(share.memory_limit);
  }
  return *device_;
}

// A product that fails leaves them to be set again.
void CpuBackend::set_threads(int threads) {
  if (threads == threads_ || threads == 0) return;
  threads_ = 0;
  set_blas_threads(threads);
  take_blas_memory();
  threads_ = threads;
}

std::unique_ptr<Collectives> CpuBackend::collectives(Group& /*group*/,
                                                     const HostCollectives& over_host) {
  if (!device_) throw std::logic_error("CpuBackend: collectives() before device()");
  return over_host(*device_);
}

}  // namespace dstune::cpu
