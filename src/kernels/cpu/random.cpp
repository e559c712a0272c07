// Random numbers: initial weights, synthetic tokens, and what is dropped or masked.
#include "core/device/operations/random.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "core/device/random_bits.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

namespace {

constexpr std::int64_t kBlock = 512;
using Block = std::array<float, kBlock>;

/// Box-Muller. Always a whole block: the same instructions for every element, wherever a shard
/// begins.
void fill_block(std::uint64_t key, std::int64_t first_index, float stddev, Block& block) {
  constexpr float kUnit = 0x1p-24F;
#pragma omp simd
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(first_index + i));
    const auto high = static_cast<std::int32_t>(bits >> 40U);
    const auto low = static_cast<std::int32_t>(bits & 0xffffffU);
    const float radius = std::sqrt(-2.0F * fast_log(static_cast<float>(high + 1) * kUnit));
    block[static_cast<std::size_t>(i)] =
        stddev * radius * fast_cos_turns(static_cast<float>(low) * kUnit);
  }
}

}  // namespace

void CpuDevice::compute(const FillNormal& op) {
  const Tensor out = op.out;
  const std::int64_t first_index = op.first_index;
  const auto stddev = static_cast<float>(op.stddev);
  const std::uint64_t key = make_key(op.seed);
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_chunks(*this, out.numel, [=](std::int64_t begin, std::int64_t end) {
      Block block;
      for (std::int64_t i = begin; i < end; i += kBlock) {
        fill_block(key, first_index + i, stddev, block);
        convert(block.data(), elements<T>(out) + i, std::min(kBlock, end - i));
      }
    });
  });
}

void CpuDevice::compute(const FillTokens& op) {
  const std::int64_t vocab = op.vocab;
  auto* const out = elements<std::int64_t>(op.out);
  assert(op.out.dtype == DType::int64);
  assert(vocab > 0 && vocab <= std::int64_t{1} << 32U);
  const std::uint64_t key = make_key(op.seed);
  const double log_of_all = std::log(static_cast<double>(vocab) + 1);
  for_chunks(*this, op.out.numel, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(i)) >> 11U;
      const double u = static_cast<double>(bits) * 0x1p-53;
      const auto rank = static_cast<std::int64_t>(std::exp(u * log_of_all));
      out[i] = std::min(rank, vocab) - 1;
    }
  });
}

void CpuDevice::calculate(const Dropout& op) {
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  assert(op.mask.numel == op.in.numel && op.probability >= 0 && op.probability < 1);
  const std::uint64_t key = make_key(op.seed);
  const std::uint32_t threshold = drop_threshold(op.probability);
  const auto factor = static_cast<float>(1 / (1 - op.probability));
  auto* const kept = elements<std::uint8_t>(op.mask);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const x = elements<T>(op.in);
    T* const y = elements<T>(op.out);
    for_chunks(*this, op.in.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const bool keep = is_kept(key, static_cast<std::uint64_t>(i), threshold);
        kept[i] = keep ? 1 : 0;
        y[i] = from_float<T>(keep ? to_float(x[i]) * factor : 0.0F);
      }
    });
  });
}

void CpuDevice::calculate(const DropoutBackward& op) {
  assert(op.d_out.numel == op.d_in.numel && op.d_out.dtype == op.d_in.dtype);
  assert(op.mask.numel == op.d_out.numel);
  const auto factor = static_cast<float>(1 / (1 - op.probability));
  const auto* const kept = elements<std::uint8_t>(op.mask);
  with_type(op.d_out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const d = elements<T>(op.d_out);
    T* const result = elements<T>(op.d_in);
    for_chunks(*this, op.d_out.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        result[i] = from_float<T>(kept[i] != 0 ? to_float(d[i]) * factor : 0.0F);
      }
    });
  });
}

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
