#include <algorithm>

#include "bench/gpu/libraries.hpp"
#include "kernels/cuda/attention/fused.hpp"
#include "kernels/cuda/attention/own.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::bench {

namespace {

cuda::Gpu& gpu_of(Device& device) { return dynamic_cast<cuda::CudaDevice&>(device).gpu(); }

cudaStream_t stream_of(Device& device) { return gpu_of(device).stream(Stream::compute); }

}  // namespace

std::string cudnn_name() { return "cuDNN alone"; }

AttentionKernels attention_by_cudnn(Device& device, const Attention& op,
                                    const AttentionBackward& backward) {
  const cudaStream_t stream = stream_of(device);
  auto* const philox = static_cast<std::int64_t*>(gpu_of(device).scratch(Stream::compute));
  if (!cuda::fused_attention(op, philox, stream) ||
      !cuda::fused_attention_backward(backward, philox, stream)) {
    return {};
  }
  return {[=] { cuda::fused_attention(op, philox, stream); },
          [=] { cuda::fused_attention_backward(backward, philox, stream); }};
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
