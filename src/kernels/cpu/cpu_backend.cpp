#include "kernels/cpu/cpu_backend.hpp"

#include <stdexcept>

#include "kernels/cpu/products/blas.hpp"

namespace dstune::cpu {

std::unique_ptr<Backend> make_backend(const Placement& /*placement*/) {
  return std::make_unique<CpuBackend>(read_product_choice());
}

Device& CpuBackend::device(const DeviceShare& share) {
  set_threads(share.threads);
  if (!device_ || device_->memory().limit() != share.memory_limit) {
    device_.emplace(share.memory_limit);
  }
  device_->products().use_onednn(types_, threads_);
  return *device_;
}

// A product that fails leaves them to be set again.
void CpuBackend::set_threads(int threads) {
  if (threads == threads_ || threads == 0) return;
  threads_ = 0;
  types_ = {};
  set_blas_threads(threads);
  take_blas_memory();
  types_ = choose_products(choice_, threads);
  threads_ = threads;
}

std::unique_ptr<Collectives> CpuBackend::collectives(Group& group,
                                                     const HostCollectives& over_host) {
  if (!device_) throw std::logic_error("CpuBackend: collectives() before device()");
  if (choice_ == ProductChoice::automatic) {
    // Each has measured for itself; a rank alone with its choice would keep the others waiting.
    const bool fp32 = group.vote(types_.fp32);
    const bool bf16 = group.vote(types_.bf16);
    device_->products().use_onednn({.fp32 = fp32, .bf16 = bf16}, threads_);
  }
  return over_host(*device_);
}

}  // namespace dstune::cpu
