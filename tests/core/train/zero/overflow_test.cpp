// fp16 gradients that overflow: the step is skipped everywhere, the scale adapts, training goes on.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/train/zero/loss_scaler.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::overflow_test {
namespace {

using test::on_training_ranks;
using test::TrainingRank;

constexpr int kAbsurd = 40;  // a power of two: a loss scaled by it is infinite in fp16
constexpr double kRate = 0.01;

struct Setting {
  int stage = 0;
  int ranks = 1;
  bool client = false;  ///< two parameter groups; in stage 0 another engine
  bool knobs = false;   ///< stage 1: fp32 sums of micro-steps; 2: no bucket
  bool offload = false;
};

std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2}) {
      for (const bool client : {false, true}) settings.push_back({stage, ranks, client});
    }
    if (stage == 1 || stage == 2) settings.push_back({stage, 2, true, true});
    if (stage > 0) settings.push_back({stage, 2, true, false, true});
  }
  return settings;
}

std::string name_of(const testing::TestParamInfo<Setting>& setting) {
  return "Stage" + std::to_string(setting.param.stage) + "Ranks" +
         std::to_string(setting.param.ranks) + (setting.param.client ? "Client" : "") +
         (setting.param.knobs ? "Knobs" : "") + (setting.param.offload ? "Offload" : "");
}

// Micro-steps are accumulated, so that a sum with an infinity must be forgotten with its step.
StepConfig config_of(const Setting& setting, const LossScaleConfig& loss_scale) {
  StepConfig config;
  config.stage = setting.stage;
  config.micro_batch = 2;
  config.accumulation_steps = 2;
  config.dtype = DType::fp16;
  config.loss_scale = loss_scale;
  config.optimizer.client = setting.client;
  config.optimizer.lr = kRate;
  config.reduce_bucket_size = 300;
  config.sub_group_size = 500;
  if (setting.knobs && setting.stage == 1) config.grad_accum_dtype = DType::fp32;
  config.contiguous_gradients = !(setting.knobs && setting.stage == 2);
  config.optimizer_device = setting.offload ? OffloadDevice::cpu : OffloadDevice::none;
  return config;
}

double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

/// The scale after each of `steps` steps, by rank; all of them must be skipped.
std::vector<std::vector<double>> scales_of_skipped_steps(const Setting& setting,
                                                         const LossScaleConfig& loss_scale,
                                                         int steps) {
  std::vector<std::vector<double>> scales(static_cast<std::size_t>(setting.ranks));
  on_training_ranks(config_of(setting, loss_scale), setting.ranks, [&](TrainingRank& own) {
    auto& mine = scales[static_cast<std::size_t>(own.rank)];
    for (int i = 0; i < steps; ++i) {
      const StepResult result = own.step.run().result;
      EXPECT_TRUE(result.overflow) << "step " << i;
      EXPECT_EQ(result.loss_scale, own.step.engine().loss_scale());
      mine.push_back(result.loss_scale);
    }
  });
  return scales;
}

/// Steps until one is not skipped, and returns how many were: at most kAbsurd.
int skip_overflows(TrainingRank& own) {
  int skipped = 0;
  while (skipped <= kAbsurd && own.step.run().result.overflow) ++skipped;
  return skipped;
}

double largest_change(const std::vector<float>& after, const std::vector<float>& before) {
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double change = std::abs(static_cast<double>(after.at(i)) - before[i]);
    if (!std::isfinite(change)) return change;
    largest = std::max(largest, change);
  }
  return largest;
}

class OverflowTest : public testing::TestWithParam<Setting> {
 protected:
  bool is_zero() const { return GetParam().stage > 0; }

  void expect_scales(const LossScaleConfig& loss_scale, const std::vector<double>& expected) const {
    const int steps = static_cast<int>(expected.size());
    for (const auto& scales : scales_of_skipped_steps(GetParam(), loss_scale, steps)) {
      EXPECT_EQ(scales, expected);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Settings, OverflowTest, testing::ValuesIn(all_settings()), name_of);

TEST_P(OverflowTest, SkippedStepLeavesParametersAsTheyWere) {
  const StepConfig config = config_of(GetParam(), {.initial_scale_power = kAbsurd});

  on_training_ranks(config, GetParam().ranks, [](TrainingRank& own) {
    const std::vector<float> before = own.parameters();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(own.step.run().result.overflow);
    EXPECT_EQ(own.parameters(), before);
  });
}

TEST_P(OverflowTest, ZeroForgivesTheFirstOverflowAndTheWrappersNone) {
  const double start = power_of_two(kAbsurd);

  expect_scales({.initial_scale_power = kAbsurd, .hysteresis = 2},
                is_zero() ? std::vector{start, start / 2, start / 4}
                          : std::vector{start / 2, start / 4, start / 8});
}

TEST_P(OverflowTest, ZeroForgivesAsManyOverflowsAsHysteresisSays) {
  const double start = power_of_two(kAbsurd);

  expect_scales({.initial_scale_power = kAbsurd, .hysteresis = 1}, {start / 2, start / 4});
  expect_scales({.initial_scale_power = kAbsurd, .hysteresis = 3},
                is_zero() ? std::vector{start, start, start / 2}
                          : std::vector{start / 2, start / 4, start / 8});
}

TEST_P(OverflowTest, StaticScaleStaysHoweverOftenItOverflows) {
  const double scale = power_of_two(kAbsurd);

  expect_scales({.static_scale = scale}, {scale, scale, scale});
}

// Adam's first update of a gradient that is not tiny is the rate, if no moment has seen an infinity
// and no bias correction counts a step that was skipped.
TEST_P(OverflowTest, TrainsFromTheStartOnceTheScaleFits) {
  const StepConfig config = config_of(GetParam(), {.initial_scale_power = kAbsurd});

  on_training_ranks(config, GetParam().ranks, [](TrainingRank& own) {
    const std::vector<float> before = own.parameters();
    const int skipped = skip_overflows(own);
    EXPECT_GT(skipped, 10);
    EXPECT_LT(skipped, kAbsurd);
    EXPECT_NEAR(largest_change(own.parameters(), before), kRate, 1e-2 * kRate);
  });
}

// The first scale that fits one step is tight for the next.
TEST_P(OverflowTest, GoesOnTrainingAfterwards) {
  const StepConfig config = config_of(GetParam(), {.initial_scale_power = kAbsurd});

  on_training_ranks(config, GetParam().ranks, [](TrainingRank& own) {
    skip_overflows(own);
    int trained = 0;
    for (int i = 0; i < 8; ++i) {
      const StepReport step = own.step.run();
      EXPECT_TRUE(std::isfinite(step.loss));
      EXPECT_TRUE(std::isfinite(step.grad_norm));
      EXPECT_EQ(step.grad_norm > 0, !step.result.overflow);
      if (!step.result.overflow) ++trained;
    }
    EXPECT_GE(trained, 4);
  });
}

TEST_P(OverflowTest, RanksAgreeOnEveryStepAndOnTheParametersAfterThem) {
  const StepConfig config = config_of(GetParam(), {.initial_scale_power = kAbsurd});
  struct Seen {
    int skipped = 0;
    double scale = 0;
    std::vector<float> parameters;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen(static_cast<std::size_t>(GetParam().ranks));

  on_training_ranks(config, GetParam().ranks, [&](TrainingRank& own) {
    const int skipped = skip_overflows(own);
    seen[static_cast<std::size_t>(own.rank)] = {skipped, own.step.engine().loss_scale(),
                                                own.parameters()};
  });

  const double halvings = seen[0].skipped - (is_zero() ? 1 : 0);
  EXPECT_EQ(seen[0].scale, power_of_two(kAbsurd) / std::exp2(halvings));
  EXPECT_TRUE(seen.back() == seen.front());
}

TEST_P(OverflowTest, AtTheSmallestScaleZeroGivesUpOnAllRanksAndTheWrappersSkipOn) {
  const double floor = power_of_two(kAbsurd - 2);
  const StepConfig config =
      config_of(GetParam(), {.initial_scale_power = kAbsurd, .hysteresis = 1, .min_scale = floor});
  std::atomic<int> gave_up{0};

  on_training_ranks(config, GetParam().ranks, [&](TrainingRank& own) {
    for (int i = 0; i < 2; ++i) own.step.run();
    EXPECT_EQ(own.step.engine().loss_scale(), floor);
    try {
      EXPECT_TRUE(own.step.run().result.overflow);
    } catch (const LossScaleExhausted&) {
      ++gave_up;
    }
    EXPECT_EQ(own.step.engine().loss_scale(), floor);
  });

  EXPECT_EQ(gave_up, is_zero() ? GetParam().ranks : 0);
}

/// What a step of fp16 on two ranks says of its overflow flag.
CollectiveLine flag_of(const StepConfig& config) {
  CollectiveLine found;
  on_training_ranks(config, 2, [&](TrainingRank& own) {
    own.step.run();
    const auto& lines = own.device.ledger().collectives();
    const auto line = std::ranges::find(lines, Purpose::overflow, &CollectiveLine::purpose);
    if (own.rank == 0 && line != lines.end()) found = *line;
  });
  return found;
}

// As DeepSpeed 0.19.8 sends it: overflow.byte() in stages 1 and 2, .to(torch.uint8) in stage 3.
TEST(OverflowFlag, IsAByteWithoutASignInEveryStageOfZero) {
  for (const int stage : {1, 2, 3}) {
    const CollectiveLine line = flag_of(config_of({.stage = stage}, {}));

    EXPECT_EQ(line.kind, CollectiveKind::all_reduce) << stage;
    EXPECT_EQ(line.dtype, DType::uint8) << stage;
    EXPECT_EQ(line.calls, 1U) << stage;
    EXPECT_EQ(line.bytes, 1U) << stage;
  }
}

// check_using_norm() of its wrapper: FloatTensor([overflow]).
TEST(OverflowFlag, OfLambWithoutZeroIsFp32) {
  StepConfig config = config_of({.stage = 0}, {});
  config.optimizer.settings = LambSettings{};

  const CollectiveLine line = flag_of(config);

  EXPECT_EQ(line.dtype, DType::fp32);
  EXPECT_EQ(line.bytes, 4U);
  EXPECT_EQ(line.calls, 1U);
}

TEST(OverflowFlag, OfLambWithoutZeroSkipsTheStep) {
  StepConfig config = config_of({.stage = 0}, {.initial_scale_power = kAbsurd});
  config.optimizer.settings = LambSettings{};

  on_training_ranks(config, 2, [](TrainingRank& own) {
    const std::vector<float> before = own.parameters();
    EXPECT_TRUE(own.step.run().result.overflow);
    EXPECT_EQ(own.parameters(), before);
  });
}

}  // namespace
}  // namespace dstune::overflow_test
