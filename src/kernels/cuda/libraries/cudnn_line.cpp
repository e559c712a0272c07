#include "kernels/cuda/libraries/cudnn_line.hpp"

#include "kernels/cuda/libraries/cudnn.hpp"

namespace dstune::cuda {

std::string cudnn_line() {
  return library_line("cuDNN", cudnn_library(), [] { return cudnn().GetVersion(); });
}

}  // namespace dstune::cuda
