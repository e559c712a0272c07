// The GPUs that this process sees.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"
#include "kernels/cuda/base/compiled_for.hpp"

namespace dstune::cuda {

struct GpuInfo {
  std::string name;  ///< "NVIDIA H200", "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
  std::string id;    ///< "GPU-5d3b1c40-...", "MIG-...", as nvidia-smi -L writes it
  Bytes memory = 0;
  Capability capability;
  bool is_mig_instance = false;
};

struct GpuList {
  std::vector<GpuInfo> gpus;  ///< by the CUDA run time's index
  std::string problem;        ///< why there are none; or ""
};

/// Whether a GPU of this name is an instance of one that is divided (Multi-Instance GPU).
inline bool is_mig_instance(std::string_view name) {
  return name.find(" MIG ") != std::string_view::npos;
}

/// Makes no context, so that it takes no memory of any GPU.
GpuList list_gpus();

}  // namespace dstune::cuda
