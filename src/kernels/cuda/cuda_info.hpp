// What is known of the GPUs of this machine. This version has no CUDA training backend.
#pragma once

#include <string>
#include <vector>

namespace dstune::cuda {

/// "NVIDIA H200, 139.72 GiB" for each GPU that the CUDA runtime sees; empty in a build without
/// CUDA, and where there is no driver.
std::vector<std::string> gpus();

/// Why nothing can be trained with CUDA, one line.
std::string why_unavailable();

}  // namespace dstune::cuda
