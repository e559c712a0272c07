// How the double ends a program that does what no CUDA program may do.
#pragma once

#include <string_view>

namespace cuda_on_host {

/// Writes "cuda_on_host: " and the message to standard error and aborts.
[[noreturn]] void misuse(std::string_view message);

}  // namespace cuda_on_host
