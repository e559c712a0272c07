// Stands in for cudnn_line.cpp where cuDNN is not built.
#include "kernels/cuda/libraries/cudnn_line.hpp"

namespace dstune::cuda {

std::string cudnn_line() { return "cuDNN: not in this build"; }

}  // namespace dstune::cuda
