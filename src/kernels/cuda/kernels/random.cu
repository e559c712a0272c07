#include <cassert>
#include <cmath>

#include "core/device/operations/embedding.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/random_bits.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

/// Box-Muller.
struct Normal {
  std::uint64_t key;
  std::int64_t first_index;
  float stddev;

  __device__ void operator()(std::int64_t i, float& out) const {
    constexpr float kUnit = 0x1p-24F;
    constexpr float kTurn = 6.28318531F;
    const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(first_index + i));
    const auto high = static_cast<std::int32_t>(bits >> 40U);
    const auto low = static_cast<std::int32_t>(bits & 0xffffffU);
    const float radius = sqrtf(-2.0F * logf(static_cast<float>(high + 1) * kUnit));
    out = stddev * radius * cosf(static_cast<float>(low) * (kUnit * kTurn));
  }
};

/// Zipf's law: the logarithms of the ranks are uniform.
struct Token {
  std::uint64_t key;
  std::int64_t vocab;
  double log_of_all;

  __device__ void operator()(std::int64_t i, std::int64_t& out) const {
    const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(i)) >> 11U;
    const double u = static_cast<double>(bits) * 0x1p-53;
    const auto rank = static_cast<std::int64_t>(exp(u * log_of_all));
    out = (rank < vocab ? rank : vocab) - 1;
  }
};

struct Position {
  std::int64_t first;
  std::int64_t period;
  __device__ void operator()(std::int64_t i, std::int64_t& out) const { out = first + i % period; }
};

}  // namespace

void CudaDevice::compute(const FillNormal& op) {
  const Normal normal{make_key(op.seed), op.first_index, static_cast<float>(op.stddev)};
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.out.numel, normal, Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const FillTokens& op) {
  assert(op.out.dtype == DType::int64);
  assert(op.vocab > 0 && op.vocab <= std::int64_t{1} << 32U);
  const Token token{make_key(op.seed), op.vocab, std::log(static_cast<double>(op.vocab) + 1)};
  for_each_element(stream(), op.out.numel, token,
                   Out<std::int64_t>{elements<std::int64_t>(op.out)});
}

void CudaDevice::compute(const FillPositions& op) {
  assert(op.out.dtype == DType::int64);
  const Position position{op.first, op.period == 0 ? op.out.numel : op.period};
  for_each_element(stream(), op.out.numel, position,
                   Out<std::int64_t>{elements<std::int64_t>(op.out)});
}

}  // namespace dstune::cuda
