#include <algorithm>

#include "bench/gpu/libraries.hpp"
#include "kernels/cuda/attention/fused.hpp"
#include "kernels/cuda/attention/own.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::bench {

namespace {

cudaStream_t stream_of(Device& device) {
  return dynamic_cast<cuda::CudaDevice&>(device).gpu().stream(Stream::compute);
}

}  // namespace

std::string cudnn_name() { return "cuDNN alone"; }

AttentionKernels attention_by_cudnn(Device& device, const Attention& op,
                                    const AttentionBackward& backward) {
  const cudaStream_t stream = stream_of(device);
  if (!cuda::fused_attention(op, stream) || !cuda::fused_attention_backward(backward, stream)) {
    return {};
  }
  return {[=] { cuda::fused_attention(op, stream); },
          [=] { cuda::fused_attention_backward(backward, stream); }};
}

AttentionKernels attention_by_own(Device& device, const Attention& op,
                                  const AttentionBackward& backward) {
  const cudaStream_t stream = stream_of(device);
  return {[=] { cuda::own_attention(op, stream); },
          [=] { cuda::own_attention_backward(backward, stream); }};
}

std::int64_t attention_workspace_of_all(const AttentionShape& shape) {
  return std::max(cuda::own_attention_workspace(shape), cuda::fused_attention_workspace(shape));
}

}  // namespace dstune::bench
