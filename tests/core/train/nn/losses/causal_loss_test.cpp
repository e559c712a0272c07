#include "core/train/nn/losses/causal_loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/head_run.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::causal_loss_test {
namespace {

using test::HeadRun;
using test::HeadSettings;
using test::HeadSizes;

/// Relative to the largest.
double difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double largest = 0;
  double apart = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    apart = std::max(apart,
                     std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i])));
  }
  return apart / largest;
}

struct Case {
  LossKind kind;
  DType dtype;
};

class CausalLossTest : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Kinds, CausalLossTest,
    testing::Values(Case{LossKind::chunked, DType::fp32}, Case{LossKind::chunked, DType::bf16},
                    Case{LossKind::tiled, DType::fp32}, Case{LossKind::tiled, DType::fp16},
                    Case{LossKind::fused, DType::fp32}, Case{LossKind::fused, DType::bf16}),
    [](const auto& param) {
      return concat(name_of(param.param.kind), "_", name_of(param.param.dtype));
    });

// Three chunks of 256 rows; one, smaller, of a single sequence.
constexpr HeadSizes kSizes[] = {{3, 200, 40, 12}, {1, 6, 100, 4}};
constexpr nn::LogitsTile kTile{256, 16};
constexpr double kCaps[] = {0, 2};  // 0: none

// 16-bit logits, and sums of 16-bit gradients that fused rounds after every chunk.
double tolerance_of(DType dtype) {
  constexpr double kSums = 4;
  if (dtype == DType::fp32) return 2e-5;
  return kSums * (dtype == DType::bf16 ? 1.0 / 256 : 1.0 / 2048);
}

TEST_P(CausalLossTest, LossAndGradientsAreThoseOfThePlainOne) {
  constexpr double kFactor = 3;
  const double tolerance = tolerance_of(GetParam().dtype);
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    const HeadSizes& sizes = kSizes[i];
    SCOPED_TRACE(concat(sizes.micro_batch, " of ", sizes.sequence, ", ", sizes.vocab, " words"));
    cpu::CpuDevice device(Bytes{1} << 30U);
    HeadRun plain(sizes, GetParam().dtype, {}, device, {.softcap = kCaps[i]});
    plain.forward();
    plain.backward(kFactor);

    HeadRun run(sizes, GetParam().dtype, {GetParam().kind}, device,
                {.softcap = kCaps[i], .tile = kTile});
    run.forward();
    run.backward(kFactor);

    const double expected = test::read(device, plain.loss);
    EXPECT_NEAR(test::read(device, run.loss), expected, tolerance / 4 * expected);
    EXPECT_LT(difference(run.d_input, plain.d_input), tolerance);
    EXPECT_LT(difference(run.engine.gradient(run.weight), plain.engine.gradient(plain.weight)),
              tolerance);
  }
}

TEST_P(CausalLossTest, EachGradientIsTheSameWithoutTheOther) {
  cpu::CpuDevice device(Bytes{1} << 30U);
  const auto run_with = [&](HeadSettings settings) {
    settings.tile = kTile;
    auto run = std::make_unique<HeadRun>(kSizes[0], GetParam().dtype, LossSettings{GetParam().kind},
                                         device, settings);
    run->forward();
    run->backward(1);
    return run;
  };
  const auto both = run_with({});

  const auto input = run_with({.trains_weight = false});
  const auto weight = run_with({.trains_input = false});

  EXPECT_EQ(input->d_input, both->d_input);
  EXPECT_TRUE(input->engine.gradient(input->weight).empty());
  EXPECT_EQ(weight->engine.gradient(weight->weight), both->engine.gradient(both->weight));
  EXPECT_TRUE(weight->d_input.empty());
}

TEST_P(CausalLossTest, NothingStaysAllocatedAndATiedGradientWaitsForItsOtherUse) {
  DryDevice device(Bytes{4} << 30U);
  HeadRun run(kSizes[0], GetParam().dtype, {GetParam().kind}, device,
              {.is_tied = true, .softcap = kCaps[1]});
  const MemoryUse before = device.memory().use();
  run.forward();

  run.backward(1);

  EXPECT_FALSE(run.is_weight_ready_before_input);
  EXPECT_EQ(run.engine.gradient(run.weight).size(), 40 * 12);
  EXPECT_EQ(device.memory().use(), before);
}

TEST(CausalLoss, LogitsAreKeptUntilTheNextForwardIsOver) {
  DryDevice device(Bytes{1} << 30U);
  HeadRun run(kSizes[0], DType::bf16, {.keep_logits = true}, device);
  const Bytes before = device.memory().use().total();
  const Bytes logits = Bytes{600} * 40 * 2;
  run.forward();
  run.backward(1);
  EXPECT_EQ(device.memory().use().total() - before, logits);

  run.engine.forget_gradients();
  run.forward();
  run.backward(1);

  EXPECT_EQ(device.memory().use().total() - before, logits);
}

// Of the plain one alone: the others make it again, or none.
TEST(CausalLoss, TheHyperbolicTangentOfCappedLogitsIsKept) {
  const auto kept = [](LossKind kind, double cap) {
    DryDevice device(Bytes{4} << 30U);
    HeadRun run(kSizes[0], DType::bf16, {kind}, device, {.softcap = cap});
    run.forward();
    return device.memory().use().at(MemoryCategory::activations);
  };
  const Bytes logits = Bytes{600} * 40 * 2;

  EXPECT_EQ(kept(LossKind::plain, kCaps[1]), kept(LossKind::plain, 0) + logits);
  for (const LossKind kind : {LossKind::chunked, LossKind::tiled, LossKind::fused}) {
    EXPECT_EQ(kept(kind, kCaps[1]), kept(kind, 0)) << name_of(kind);
  }
}

// (BT + inc - 1) / inc, inc = (V + H - 1) / H, as Liger's comment has it, then a power of two.
TEST(CausalLoss, ChunksOfTheFusedLossAreLigers) {
  EXPECT_EQ(nn::fused_chunk_rows(16384, 4096, 32000), 2048);
  EXPECT_EQ(nn::fused_chunk_rows(8192, 2048, 128256), 256);
  EXPECT_EQ(nn::fused_chunk_rows(100, 64, 40), 100);
  EXPECT_EQ(nn::fused_chunk_rows(100, 8, 40), 32);
  EXPECT_EQ(nn::fused_chunk_rows(3, 8, 4000), 1);
}

}  // namespace
}  // namespace dstune::causal_loss_test
