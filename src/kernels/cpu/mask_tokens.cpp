#include "core/device/operations/mask_tokens.hpp"

#include <cassert>

#include "core/device/token_masking.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const MaskTokens& op) {
  assert(op.tokens.dtype == DType::int64 && op.inputs.dtype == DType::int64);
  assert(op.tokens.numel == op.inputs.numel && op.tokens.numel == op.labels.numel);
  assert(op.vocab_size > 0 && op.vocab_size <= std::int64_t{1} << 32U);
  const TokenMasking masking{make_key(op.seed), drop_threshold(op.probability), op.mask_token,
                             op.pad_token, op.vocab_size};
  const auto* const tokens = elements<std::int64_t>(op.tokens);
  auto* const inputs = elements<std::int64_t>(op.inputs);
  auto* const labels = elements<std::int64_t>(op.labels);
  for_chunks(*this, op.tokens.numel, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const TokenMasking::Masked masked = masking.at(i, tokens[i]);
      inputs[i] = masked.input;
      labels[i] = masked.label;
    }
  });
}

}  // namespace dstune::cpu
