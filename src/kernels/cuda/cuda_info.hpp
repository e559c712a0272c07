// What is known of the GPUs of this machine. This version has no CUDA training backend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/backend.hpp"

namespace dstune::cuda {

/// "NVIDIA H200, 139.72 GiB" for each GPU that the CUDA runtime sees; empty in a build without
/// CUDA, and where there is no driver.
std::vector<std::string> gpus();

/// Why nothing can be trained with CUDA, one line.
std::string why_unavailable();

/// The GPUs, which cannot be used.
DeviceInfo describe_device();

/// @throws Error  always: why_unavailable()
std::unique_ptr<Backend> make_backend();

}  // namespace dstune::cuda
