// GPUs as a Backend: one per process.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/device/backend.hpp"
#include "kernels/cuda/collectives/communicator_cache.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/device/gpu.hpp"
#include "kernels/cuda/gemm/matrix_products.hpp"

namespace dstune::cuda {

/// Keeps context, memory, handles and communicators from experiment to experiment.
class CudaBackend final : public Backend {
 public:
  /// Makes the context of GPU `index` of those that this process sees.
  /// @param has_peers  there are other workers, so that NCCL gets its reserve
  /// @throws CudaError, DeviceLostError; Error if a library is not there
  explicit CudaBackend(int index, bool has_peers = false);

  /// Waits for what the experiment before has left on the streams.
  /// @throws DeviceLostError  if that does not end, or if memory of it is still in use
  Device& device(const DeviceShare& share) override;
  std::unique_ptr<Collectives> collectives(Group& group, const HostCollectives& over_host) override;

 private:
  void drain(const std::function<void()>& meanwhile);

  bool has_peers_;
  Gpu gpu_;
  MatrixProducts products_;
  std::optional<CudaDevice> device_;
  /// Ends before the device does, whose memory a hung collective may still use.
  CommunicatorCache communicators_;
};

}  // namespace dstune::cuda
