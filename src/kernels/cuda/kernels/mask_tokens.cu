#include <cassert>

#include "core/device/operations/mask_tokens.hpp"
#include "core/device/token_masking.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct MaskToken {
  TokenMasking masking;

  __device__ void operator()(std::int64_t i, std::int64_t token, std::int64_t& input,
                             std::int64_t& label) const {
    const TokenMasking::Masked masked = masking.at(i, token);
    input = masked.input;
    label = masked.label;
  }
};

}  // namespace

void CudaDevice::compute(const MaskTokens& op) {
  assert(op.tokens.dtype == DType::int64 && op.inputs.dtype == DType::int64);
  assert(op.tokens.numel == op.inputs.numel && op.tokens.numel == op.labels.numel);
  assert(op.vocab_size > 0 && op.vocab_size <= std::int64_t{1} << 32U);
  const MaskToken mask{{make_key(op.seed), drop_threshold(op.probability), op.mask_token,
                        op.pad_token, op.vocab_size}};
  for_each_element(stream(), op.tokens.numel, mask,
                   In<std::int64_t>{elements<const std::int64_t>(op.tokens)},
                   Out<std::int64_t>{elements<std::int64_t>(op.inputs)},
                   Out<std::int64_t>{elements<std::int64_t>(op.labels)});
}

}  // namespace dstune::cuda
