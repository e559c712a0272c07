#include "core/train/run_experiment.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.hpp"
#include "tests/core/train/run_on_cpus.hpp"
#include "tests/support/set_in.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::run_experiment_test {
namespace {

using test::caching_experiment;
using test::dry_peak;
using test::run_on_cpus;
using test::TinyExperiment;

/// The first rank that needs the most memory, and its peak.
std::pair<int, PeakMemory> largest_dry_peak(const Experiment& experiment) {
  std::pair<int, PeakMemory> largest{0, dry_peak(experiment, 0)};
  for (int rank = 1; rank < experiment.ranks; ++rank) {
    const PeakMemory peak = dry_peak(experiment, rank);
    if (peak.allocated > largest.second.allocated) largest = {rank, peak};
  }
  return largest;
}

std::vector<TinyExperiment> experiments_of(int stage) {
  std::vector<TinyExperiment> all;
  for (const int ranks : {1, 2, 3}) {
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
      for (const bool overlap : {false, true}) {
        const json::object zero = {{"reduce_bucket_size", 100}, {"overlap_comm", overlap}};
        all.push_back({stage, ranks, 2, 2, dtype, overlap, zero});
      }
    }
  }
  return all;
}

class RunExperiment : public testing::TestWithParam<int> {};

TEST_P(RunExperiment, NeedsAndCommunicatesWhatTheDryRunSays) {
  for (const TinyExperiment& tiny : experiments_of(GetParam())) {
    const Experiment experiment = tiny.make();

    const auto outcomes = run_on_cpus(experiment);

    const auto& measured = std::get<Measured>(outcomes.front());
    const auto dry = std::get<Measured>(dry_run(experiment, 0).outcome);
    EXPECT_EQ(measured.peak_memory, largest_dry_peak(experiment).second) << tiny.name();
    EXPECT_TRUE(measured.ledger.same_work(dry.ledger)) << tiny.name();
  }
}

TEST_P(RunExperiment, ComputesAStepOfManyMicroStepsFromSome) {
  for (TinyExperiment tiny : experiments_of(GetParam())) {
    if (tiny.ranks != 2) continue;
    tiny.accumulation_steps = 31;
    Experiment experiment = tiny.make();
    const auto dry = std::get<Measured>(dry_run(experiment, 0).outcome);

    const auto computed = std::get<Measured>(run_on_cpus(experiment).front());
    experiment.settings.whole_steps = true;
    const auto whole = std::get<Measured>(run_on_cpus(experiment).front());

    EXPECT_EQ(computed.micro_steps_run, 5) << tiny.name();
    EXPECT_EQ(whole.micro_steps_run, 0) << tiny.name();
    EXPECT_TRUE(computed.ledger.same_work(dry.ledger)) << tiny.name();
    EXPECT_TRUE(whole.ledger.same_work(dry.ledger)) << tiny.name();
    EXPECT_EQ(computed.peak_memory, whole.peak_memory) << tiny.name();
  }
}

// Half of 2^30 and its halvings do not fit into fp16: warm-up and first steps update nothing.
TEST_P(RunExperiment, MeasuresOnlyStepsThatUpdate) {
  Experiment experiment = TinyExperiment{GetParam(), 2, 1, 1, DType::fp16}.make();
  testing_support::set_in(experiment.ds_config, "fp16", "initial_scale_power", 30);
  const auto dry = std::get<Measured>(dry_run(experiment, 0).outcome);
  // Now and then a step overflows again: stage 3 gathers in the next what it did not gather then.
  for (const int steps : {1, 2, 3, 4, 5, 6}) {
    experiment.settings.measure_steps = steps;

    const auto outcomes = run_on_cpus(experiment);

    const auto& measured = std::get<Measured>(outcomes.front());
    EXPECT_TRUE(measured.ledger.same_work(dry.ledger)) << steps;
  }
}

// A scale that grows after every step overflows in every second one.
TEST(RunExperimentForLong, IsNoFailureWhereTheScaleOverflowsNowAndThen) {
  Experiment experiment = TinyExperiment{0, 1, 1, 1, DType::fp16}.make();
  testing_support::set_in(experiment.ds_config, "fp16", "loss_scale_window", 1);
  testing_support::set_in(experiment.ds_config, "fp16", "hysteresis", 1);
  testing_support::set_in(experiment.ds_config, "fp16", "initial_scale_power", 20);
  experiment.settings.measure_steps = 130;

  EXPECT_TRUE(std::holds_alternative<Measured>(run_on_cpus(experiment).front()));
}

TEST_P(RunExperiment, GivesUpWhatCannotWinAfterTwoSteps) {
  Experiment experiment = TinyExperiment{GetParam(), 2}.make();
  experiment.settings.measure_steps = 4;
  experiment.give_up_above = 1e-9;

  EXPECT_EQ(std::get<Measured>(run_on_cpus(experiment).front()).steps, 2);

  experiment.give_up_above = 1e9;
  EXPECT_GE(std::get<Measured>(run_on_cpus(experiment).front()).steps, 4);
}

TEST_P(RunExperiment, WarmsUpAndMeasuresForAsLongAsIsAskedFor) {
  Experiment experiment = TinyExperiment{GetParam(), 2}.make();
  experiment.settings.warmup_steps = 0;
  experiment.settings.measure_steps = 1;
  experiment.settings.least_warmup_time = 0.03;
  experiment.settings.least_measure_time = 0.05;

  const auto outcomes = run_on_cpus(experiment);

  const auto& measured = std::get<Measured>(outcomes.front());
  EXPECT_GE(measured.warmup_time, 0.03);
  EXPECT_GE(measured.measure_time, 0.05);
  EXPECT_GT(measured.steps, 3) << "which noise alone would not take";
}

TEST_P(RunExperiment, WarmsUpForAQuarterOfItsTimeLimitAtMost) {
  Experiment experiment = TinyExperiment{GetParam(), 2}.make();
  experiment.settings.experiment_timeout = 0.1;
  experiment.settings.least_warmup_time = 1e9;

  EXPECT_TRUE(std::holds_alternative<Measured>(run_on_cpus(experiment).front()));
}

TEST_P(RunExperiment, FailsIfNoStepUpdates) {
  Experiment experiment = TinyExperiment{GetParam(), 2, 1, 1, DType::fp16}.make();
  testing_support::set_in(experiment.ds_config, "fp16", "loss_scale", 1e30);

  const auto outcomes = run_on_cpus(experiment);

  for (const Outcome& outcome : outcomes) EXPECT_TRUE(std::holds_alternative<Failed>(outcome));
}

TEST_P(RunExperiment, MeasuresEnoughStepsOfAFiniteLoss) {
  Experiment experiment = TinyExperiment{GetParam(), 2, 2}.make();
  experiment.settings.measure_steps = 4;

  const auto outcomes = run_on_cpus(experiment);

  const auto& measured = std::get<Measured>(outcomes.front());
  EXPECT_GE(measured.steps, 4);
  EXPECT_LE(measured.steps, 3 * 4);
  EXPECT_NEAR(measured.first_loss, std::log(29.0), 0.1);  // the vocabulary, before any learning
  EXPECT_TRUE(std::isfinite(measured.last_loss));
  EXPECT_NE(measured.last_loss, measured.first_loss);
  EXPECT_GT(measured.step_time.median, 0);
  EXPECT_GT(measured.samples_per_s, 0);
}

TEST_P(RunExperiment, RunsAtItsPeakAndRunsOutOfMemoryOneByteBelow) {
  for (const int ranks : {1, 3}) {
    Experiment experiment = TinyExperiment{GetParam(), ranks}.make();
    testing_support::set_in(experiment.ds_config, "zero_optimization", "reduce_bucket_size", 100);
    const auto [rank, peak] = largest_dry_peak(experiment);

    experiment.settings.memory_limit = peak.allocated;
    const auto enough = run_on_cpus(experiment);
    experiment.settings.memory_limit = peak.allocated - 1;
    const auto too_little = run_on_cpus(experiment);

    EXPECT_TRUE(std::holds_alternative<Measured>(enough.front()));
    ASSERT_TRUE(std::holds_alternative<OutOfMemory>(too_little.front()));
    const auto& fault = std::get<OutOfMemory>(too_little.front());
    EXPECT_EQ(fault.rank, rank);
    EXPECT_EQ(fault.limit, peak.allocated - 1);
    EXPECT_EQ(fault.in_use + fault.requested, peak.allocated);
    const cpu::CpuDevice cpu(1);
    EXPECT_EQ(fault, std::get<OutOfMemory>(dry_run(experiment, rank, &cpu).outcome));
  }
}

TEST_P(RunExperiment, FailsWhenTheLossIsNotFinite) {
  Experiment experiment = TinyExperiment{GetParam(), 2}.make();
  experiment.ds_config.set("optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e30}}}});

  const auto outcomes = run_on_cpus(experiment);

  ASSERT_TRUE(std::holds_alternative<Failed>(outcomes.front()));
  const auto& failed = std::get<Failed>(outcomes.front());
  EXPECT_EQ(failed.kind, FailureKind::not_finite);
  EXPECT_THAT(failed.reason, testing::HasSubstr("the loss became"));
}

/// The smallest limit within which a dry run of every rank goes through: a sum of segments.
Bytes least_limit(Experiment experiment, Bytes high) {
  constexpr Bytes kSegment = Bytes{2} << 20U;
  const cpu::CpuDevice cpu(1);
  Bytes low = 0;  // does not
  while (high - low > kSegment) {
    const Bytes middle = (low / kSegment + high / kSegment) / 2 * kSegment;
    experiment.settings.memory_limit = middle;
    bool runs = true;
    for (int rank = 0; rank < experiment.ranks; ++rank) {
      runs = runs && std::holds_alternative<Measured>(dry_run(experiment, rank, &cpu).outcome);
    }
    (runs ? high : low) = middle;
  }
  return high;
}

TEST_P(RunExperiment, ReservesAsACachingAllocatorWhatTheDryRunSays) {
  const Experiment experiment = caching_experiment(GetParam(), 2);

  const auto outcomes = run_on_cpus(experiment);

  const PeakMemory& peak = std::get<Measured>(outcomes.front()).peak_memory;
  EXPECT_EQ(peak.reserved,
            std::max(dry_peak(experiment, 0).reserved, dry_peak(experiment, 1).reserved));
  EXPECT_GT(peak.reserved, peak.allocated);
}

TEST_P(RunExperiment, RunsOutOfACachingAllocatorsMemoryOneByteBelowTheLeastLimit) {
  Experiment experiment = caching_experiment(GetParam(), 2);
  const Bytes least = least_limit(experiment, dry_peak(experiment, 0).reserved + (Bytes{2} << 20U));

  experiment.settings.memory_limit = least;
  const auto enough = run_on_cpus(experiment);
  experiment.settings.memory_limit = least - 1;
  const auto too_little = run_on_cpus(experiment);

  ASSERT_TRUE(std::holds_alternative<Measured>(enough.front()));
  EXPECT_LE(std::get<Measured>(enough.front()).peak_memory.reserved, least);
  ASSERT_TRUE(std::holds_alternative<OutOfMemory>(too_little.front()));
  const auto& fault = std::get<OutOfMemory>(too_little.front());
  EXPECT_GT(fault.reserved + fault.requested, least - 1);
  EXPECT_GE(fault.reserved, fault.in_use);
  const cpu::CpuDevice cpu(1);
  EXPECT_EQ(fault, std::get<OutOfMemory>(dry_run(experiment, fault.rank, &cpu).outcome));
}

INSTANTIATE_TEST_SUITE_P(Stages, RunExperiment, testing::Values(0, 1, 2, 3));

TEST(RunExperimentWithUnsupportedKnob, IsSkippedOnEveryRankAndNamesIt) {
  const json::object zenflow = {{"zenflow", {{"topk_ratio", 0.1}}}};

  const auto outcomes = run_on_cpus(TinyExperiment{.stage = 2, .ranks = 2, .zero = zenflow}.make());

  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(std::holds_alternative<Skipped>(outcome));
    EXPECT_THAT(std::get<Skipped>(outcome).reason, testing::HasSubstr("zero_optimization.zenflow"));
  }
}

TEST(RunExperimentWithExhaustedLossScale, FailsOnEveryRank) {
  Experiment experiment = TinyExperiment{.stage = 2, .ranks = 2, .dtype = DType::fp16}.make();
  experiment.ds_config.set("fp16", {{"enabled", true}, {"initial_scale_power", 0}});
  experiment.ds_config.set("optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e30}}}});

  const auto outcomes = run_on_cpus(experiment);

  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(std::holds_alternative<Failed>(outcome));
    EXPECT_EQ(std::get<Failed>(outcome).kind, FailureKind::error);
  }
}

// The first step is the longest batch, so the run needs what the dry run says, whichever batches
// came.
TEST_P(RunExperiment, OfLengthsThatVaryNeedsTheLongestBatchAndMeasuresTheMean) {
  Experiment experiment = TinyExperiment{GetParam(), 2, 2, 2}.make();
  experiment.settings.sequence_length = 7;
  experiment.settings.lengths = {.law = LengthLaw::uniform, .least = 2, .most = 7};
  experiment.settings.warmup_steps = 0;
  experiment.settings.measure_steps = 1;

  const auto measured = std::get<Measured>(run_on_cpus(experiment).front());

  EXPECT_EQ(measured.peak_memory, largest_dry_peak(experiment).second);
  ASSERT_TRUE(measured.varying.has_value());
  EXPECT_GE(measured.steps, 8);
  EXPECT_GT(measured.varying->mean_padded_tokens, measured.varying->mean_real_tokens);
  EXPECT_LE(measured.varying->mean_padded_tokens, 2 * 2 * 2 * 7);
}

}  // namespace
}  // namespace dstune::run_experiment_test
