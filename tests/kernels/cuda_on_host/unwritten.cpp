// What the CUDA backend does not have yet: throws.
#include <stdexcept>

#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

struct MatrixProducts::State {};
MatrixProducts::MatrixProducts() = default;
MatrixProducts::~MatrixProducts() = default;

std::int64_t CudaDevice::attention_workspace(const AttentionShape&) const { return 0; }

#define DSTUNE_UNWRITTEN(Operation) \
  void CudaDevice::compute(const Operation&) { throw std::logic_error(#Operation); }
DSTUNE_UNWRITTEN(Gemm)
DSTUNE_UNWRITTEN(LayerNorm)
DSTUNE_UNWRITTEN(LayerNormBackward)
DSTUNE_UNWRITTEN(GeluNew)
DSTUNE_UNWRITTEN(GeluNewBackward)
DSTUNE_UNWRITTEN(Attention)
DSTUNE_UNWRITTEN(AttentionBackward)
DSTUNE_UNWRITTEN(Embedding)
DSTUNE_UNWRITTEN(EmbeddingBackward)
DSTUNE_UNWRITTEN(LogSoftmax)
DSTUNE_UNWRITTEN(LogSoftmaxBackward)
DSTUNE_UNWRITTEN(NextTokens)
DSTUNE_UNWRITTEN(NllLoss)
DSTUNE_UNWRITTEN(NllLossBackward)
#undef DSTUNE_UNWRITTEN

}  // namespace dstune::cuda
