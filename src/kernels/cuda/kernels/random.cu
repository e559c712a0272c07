// Random numbers: initial weights, synthetic tokens, and what is dropped or masked.
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

namespace {

struct Drop {
  std::uint64_t key;
  std::uint32_t threshold;
  float factor;

  __device__ void operator()(std::int64_t i, float in, std::uint8_t& kept, float& out) const {
    const bool keep = is_kept(key, static_cast<std::uint64_t>(i), threshold);
    kept = keep ? 1 : 0;
    out = keep ? in * factor : 0.0F;
  }
};

struct DropBackward {
  float factor;

  __device__ void operator()(std::int64_t, float d_out, std::uint8_t kept, float& d_in) const {
    d_in = kept != 0 ? d_out * factor : 0.0F;
  }
};

}  // namespace

void CudaDevice::compute(const Dropout& op) {
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  assert(op.mask.numel == op.in.numel && op.probability >= 0 && op.probability < 1);
  const Drop drop{make_key(op.seed), drop_threshold(op.probability),
                  static_cast<float>(1 / (1 - op.probability))};
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.in.numel, drop, In<T>{elements<T>(op.in)},
                     Out<std::uint8_t>{elements<std::uint8_t>(op.mask)},
                     Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const DropoutBackward& op) {
  assert(op.d_out.numel == op.d_in.numel && op.d_out.dtype == op.d_in.dtype);
  assert(op.mask.numel == op.d_out.numel);
  const DropBackward drop{static_cast<float>(1 / (1 - op.probability))};
  with_type(op.d_out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.d_out.numel, drop, In<T>{elements<T>(op.d_out)},
                     In<std::uint8_t>{elements<std::uint8_t>(op.mask)},
                     Out<T>{elements<T>(op.d_in)});
  });
}

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
