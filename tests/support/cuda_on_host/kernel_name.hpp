// Names of kernels, for reports and logs.
#pragma once

#include <string>

namespace cuda_on_host {

/// The demangled name with its template arguments, without parameters; its address if the program
/// has no symbols. Kept after the first call.
std::string kernel_name(const void* kernel);

}  // namespace cuda_on_host
