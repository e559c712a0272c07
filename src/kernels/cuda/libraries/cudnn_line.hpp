// What --list-backends says of cuDNN, in builds with and without it.
#pragma once

#include <string>

namespace dstune::cuda {

/// "cuDNN: 9.19.0 (FILE)", why it cannot be used, or that it is not built in.
std::string cudnn_line();

}  // namespace dstune::cuda
