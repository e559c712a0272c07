// Stands in for cudnn_frontend_attention.cpp where cuDNN or its frontend is not built.
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "kernels/cuda/attention/fused.hpp"

namespace dstune::cuda {

namespace {

void warn_once() {
  static const bool warned = [] {
    log_warning(concat("attention is computed by kernels of our own: ", why_never_fused()));
    return true;
  }();
  static_cast<void>(warned);
}

}  // namespace

std::string_view why_never_fused() {
  return "this build has no cuDNN, or not its frontend: pip install nvidia-cudnn-frontend, and "
         "build again";
}

bool fused_attention(const Attention& op, std::int64_t* /*philox*/, cudaStream_t /*stream*/) {
  if (is_cudnns(op.shape, op.out.dtype)) warn_once();
  return false;
}

bool fused_attention_backward(const AttentionBackward& /*op*/, std::int64_t* /*philox*/,
                              cudaStream_t /*stream*/) {
  return false;
}

std::int64_t fused_attention_workspace(const AttentionShape& /*shape*/) { return 0; }

}  // namespace dstune::cuda
