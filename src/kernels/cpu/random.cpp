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

}  // namespace dstune::cpu
