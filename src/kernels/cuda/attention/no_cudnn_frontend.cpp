// Stands in for cudnn_frontend_attention.cpp where cuDNN or its frontend is not built.
#include "kernels/cuda/attention/fused.hpp"

namespace dstune::cuda {

bool fused_attention(const Attention& /*op*/, cudaStream_t /*stream*/) { return false; }

bool fused_attention_backward(const AttentionBackward& /*op*/, cudaStream_t /*stream*/) {
  return false;
}

std::int64_t fused_attention_workspace(const AttentionShape& /*shape*/) { return 0; }

}  // namespace dstune::cuda
