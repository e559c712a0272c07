// What is known of the GPUs of this machine and of NVIDIA's libraries on it. Only describe_device()
// for a worker makes a context.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/backend.hpp"

namespace dstune::cuda {

/// "GPU 0: NVIDIA H200, 139.72 GiB, compute capability 9.0 (GPU-5d3b...)" for each that the CUDA
/// run time sees; empty in a build without CUDA, and where there is no driver.
std::vector<std::string> gpus();

/// "CUDA driver: for CUDA 13.0", "CUDA run time: 13.0 (linked), needs driver 580 or newer", for
/// which GPUs there is code, "NCCL: 2.28.9 (/usr/lib/libnccl.so.2)" or why it cannot be used, a
/// line each; empty in a build without CUDA.
std::vector<std::string> library_versions();

/// Why nothing can be trained with CUDA here, one line; "" if it can.
std::string why_unavailable();

/// The GPU of the worker at `placement`, as own_gpu() says. One without code in this program cannot
/// be used.
DeviceInfo describe_device(const Placement& placement);

/// @throws Error  why_unavailable(); CudaError, DeviceLostError
std::unique_ptr<Backend> make_backend(const Placement& placement);

}  // namespace dstune::cuda
