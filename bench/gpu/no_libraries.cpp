#include "bench/gpu/libraries.hpp"

namespace dstune::bench {

std::function<void()> product_alone(Device& /*device*/, Stopwatch& /*stopwatch*/,
                                    const Gemm& /*op*/) {
  return {};
}

std::string cudnn_name() { return "cuDNN alone (a build without CUDA)"; }

AttentionKernels attention_by_cudnn(Device& /*device*/, const Attention& /*op*/,
                                    const AttentionBackward& /*backward*/) {
  return {};
}

AttentionKernels attention_by_own(Device& /*device*/, const Attention& /*op*/,
                                  const AttentionBackward& /*backward*/) {
  return {};
}

std::int64_t attention_workspace_of_all(const AttentionShape& /*shape*/) { return 0; }

}  // namespace dstune::bench
