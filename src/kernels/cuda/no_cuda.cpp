// Stands in for cuda_info.cpp where CUDA is not built.
#include "kernels/cuda/cuda_info.hpp"

namespace dstune::cuda {

std::vector<std::string> gpus() { return {}; }

std::string why_unavailable() {
  return "this build is without CUDA, and this version has no CUDA training backend";
}

}  // namespace dstune::cuda
