// The GPUs that this process sees.
#pragma once

#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace dstune::cuda {

struct GpuInfo {
  std::string name;  ///< "NVIDIA H200"
  std::string id;    ///< "GPU-5d3b1c40-...", as nvidia-smi -L writes it
  Bytes memory = 0;
};

struct GpuList {
  std::vector<GpuInfo> gpus;  ///< by the CUDA run time's index
  std::string problem;        ///< why there are none; or ""
};

/// Makes no context, so that it takes no memory of any GPU.
GpuList list_gpus();

/// Which of `count` GPUs, at least one, the worker of `local_rank` takes: bindings that leave it
/// one GPU are followed.
int own_gpu(int local_rank, int count);

}  // namespace dstune::cuda
