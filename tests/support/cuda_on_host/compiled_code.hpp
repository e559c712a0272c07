// For which GPUs a program has code.
#pragma once

#include <string_view>

#include "tests/support/cuda_on_host/include/driver_types.h"

namespace cuda_on_host {

/// Whether a program that was compiled for `architectures`, written as CMAKE_CUDA_ARCHITECTURES
/// ("75-real;90"), runs on a GPU of this compute capability. Code of 8.0 runs on 8.0 to 8.9, PTX of
/// 8.0 on every GPU from 8.0 on; what is only of "90a" on 9.0 alone.
bool has_code_for(std::string_view architectures, int major, int minor);

/// cudaErrorNoKernelImageForDevice where the double's GPUs are of a kind without.
cudaError_t find_code();

}  // namespace cuda_on_host
