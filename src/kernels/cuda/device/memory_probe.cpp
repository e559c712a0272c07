#include "kernels/cuda/device/memory_probe.hpp"

#include <cuda_runtime_api.h>

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/base/handles.hpp"
#include "kernels/cuda/collectives/communicator_cache.hpp"
#include "kernels/cuda/device/gpu.hpp"
#include "kernels/cuda/gemm/matrix_products.hpp"

namespace dstune::cuda {

FreeMemory probe_memory(int index, bool has_peers) {
  DSTUNE_CUDA_CHECK(cudaSetDevice(index));
  DSTUNE_CUDA_CHECK(cudaFree(nullptr));  // makes the context
  FreeMemory memory{device_space().free, {}};
  const Gpu gpu(index);
  const Bytes with_scratch = device_space().free;
  const MatrixProducts products;
  memory.reserves = {{"operations' scratch", memory.free - with_scratch, true},
                     {"libraries' workspaces", with_scratch - device_space().free, true}};
  if (has_peers) {
    memory.reserves.push_back({"NCCL's buffers", CommunicatorLimits{}.reserve, false});
  }
  return memory;
}

}  // namespace dstune::cuda
