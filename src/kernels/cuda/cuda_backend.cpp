#include "kernels/cuda/cuda_backend.hpp"

#include <chrono>
#include <functional>
#include <stdexcept>

#include "core/base/text.hpp"
#include "core/device/faults.hpp"

namespace dstune::cuda {

CudaBackend::CudaBackend(int index, bool has_peers) : has_peers_(has_peers), gpu_(index) {
  gpu_.note_free_memory();
}

Device& CudaBackend::device(const DeviceShare& share) {
  communicators_.check();
  drain(share.meanwhile);
  device_.reset();
  if (gpu_.in_use() > 0) {
    throw DeviceLostError(concat("GPU ", gpu_.index(), ": ", format_bytes(gpu_.in_use()),
                                 " are still in use after an experiment"));
  }
  device_.emplace(gpu_, products_, share.memory_limit, share.threads);
  return *device_;
}

// An experiment that was given up may have left kernels behind, which write to memory that the next
// one would get.
void CudaBackend::drain(const std::function<void()>& meanwhile) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kLongest{20};
  const auto end = Clock::now() + kLongest;
  gpu_.wait_for_streams([&] {
    if (meanwhile) meanwhile();
    if (Clock::now() < end) return;
    throw DeviceLostError(concat("GPU ", gpu_.index(),
                                 ": a kernel of an experiment that was given up",
                                 " has not ended in ", kLongest.count(), " s"));
  });
}

std::unique_ptr<Collectives> CudaBackend::collectives(Group& group,
                                                      const HostCollectives& /*over_host*/) {
  if (!device_) throw std::logic_error("CudaBackend: collectives() before device()");
  auto collectives = communicators_.collectives(group, *device_);
  gpu_.leave_to_nccl(
      {communicators_.bytes(), has_peers_ ? communicators_.bytes_to_come() : Bytes{0}});
  return collectives;
}

}  // namespace dstune::cuda
