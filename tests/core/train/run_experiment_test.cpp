#include "core/train/run_experiment.hpp"

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device/dry_collectives.hpp"
#include "core/device/dry_device.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune {
namespace {

using test::TinyExperiment;

/// Outcomes by rank, on CPU devices with the experiment's memory limit; checks that every rank
/// gives all memory back.
std::vector<Outcome> run_on_cpus(const Experiment& experiment) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(experiment.ranks));
  test::run_on_ranks(experiment.ranks, [&](int rank, test::ThreadTeam& team) {
    cpu::CpuDevice device(experiment.settings.memory_limit);
    test::ThreadCollectives collectives(device, team, rank);
    test::ThreadGroup group(team, rank);

    outcomes[static_cast<std::size_t>(rank)] =
        run_experiment(experiment, device, collectives, group);

    EXPECT_EQ(device.memory().in_use(), 0U) << "rank " << rank;
  });
  return outcomes;
}

PeakMemory dry_peak(const Experiment& experiment, int rank) {
  const cpu::CpuDevice cpu(1);
  return std::get<Measured>(dry_run(experiment, rank, &cpu).outcome).peak_memory;
}

/// The first rank that needs the most memory, and its peak.
std::pair<int, PeakMemory> largest_dry_peak(const Experiment& experiment) {
  std::pair<int, PeakMemory> largest{0, dry_peak(experiment, 0)};
  for (int rank = 1; rank < experiment.ranks; ++rank) {
    const PeakMemory peak = dry_peak(experiment, rank);
    if (peak.total > largest.second.total) largest = {rank, peak};
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

// Half of 2^30 and its halvings do not fit into fp16: warm-up and first steps update nothing.
TEST_P(RunExperiment, MeasuresOnlyStepsThatUpdate) {
  Experiment experiment = TinyExperiment{GetParam(), 2, 1, 1, DType::fp16}.make();
  experiment.ds_config["fp16"].get_object()["initial_scale_power"] = 30;
  const auto dry = std::get<Measured>(dry_run(experiment, 0).outcome);
  // Now and then a step overflows again: stage 3 gathers in the next what it did not gather then.
  for (const int steps : {1, 2, 3, 4, 5, 6}) {
    experiment.settings.measure_steps = steps;

    const auto outcomes = run_on_cpus(experiment);

    const auto& measured = std::get<Measured>(outcomes.front());
    EXPECT_TRUE(measured.ledger.same_work(dry.ledger)) << steps;
  }
}

TEST_P(RunExperiment, FailsIfNoStepUpdates) {
  Experiment experiment = TinyExperiment{GetParam(), 2, 1, 1, DType::fp16}.make();
  experiment.ds_config["fp16"].get_object()["loss_scale"] = 1e30;

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
    experiment.ds_config["zero_optimization"].as_object()["reduce_bucket_size"] = 100;
    const auto [rank, peak] = largest_dry_peak(experiment);

    experiment.settings.memory_limit = peak.total;
    const auto enough = run_on_cpus(experiment);
    experiment.settings.memory_limit = peak.total - 1;
    const auto too_little = run_on_cpus(experiment);

    EXPECT_TRUE(std::holds_alternative<Measured>(enough.front()));
    ASSERT_TRUE(std::holds_alternative<OutOfMemory>(too_little.front()));
    const auto& fault = std::get<OutOfMemory>(too_little.front());
    EXPECT_EQ(fault.rank, rank);
    EXPECT_EQ(fault.limit, peak.total - 1);
    EXPECT_EQ(fault.in_use + fault.requested, peak.total);
    const cpu::CpuDevice cpu(1);
    EXPECT_EQ(fault, std::get<OutOfMemory>(dry_run(experiment, rank, &cpu).outcome));
  }
}

TEST_P(RunExperiment, FailsWhenTheLossIsNotFinite) {
  Experiment experiment = TinyExperiment{GetParam(), 2}.make();
  experiment.ds_config["optimizer"] = {{"type", "AdamW"}, {"params", {{"lr", 1e30}}}};

  const auto outcomes = run_on_cpus(experiment);

  ASSERT_TRUE(std::holds_alternative<Failed>(outcomes.front()));
  const auto& failed = std::get<Failed>(outcomes.front());
  EXPECT_EQ(failed.kind, FailureKind::not_finite);
  EXPECT_THAT(failed.reason, testing::HasSubstr("the loss became"));
}

/// Tensors of both of the caching allocator's pools.
Experiment caching_experiment(int stage, int ranks) {
  TinyExperiment tiny{stage, ranks, 8, 3, DType::bf16, true, {{"overlap_comm", true}}};
  tiny.model.vocab_size = 8192;  // logits of 2 MiB in bf16
  tiny.model.max_positions = 16;
  Experiment experiment = tiny.make();
  experiment.settings.sequence_length = 16;
  experiment.settings.measure_steps = 1;
  experiment.settings.allocator = AllocatorModel::caching;
  return experiment;
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
  EXPECT_GT(peak.reserved, peak.total);
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
  const json::object offload = {{"offload_optimizer", {{"device", "cpu"}}}};

  const auto outcomes = run_on_cpus(TinyExperiment{.stage = 2, .ranks = 2, .zero = offload}.make());

  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(std::holds_alternative<Skipped>(outcome));
    EXPECT_THAT(std::get<Skipped>(outcome).reason,
                testing::HasSubstr("zero_optimization.offload_optimizer"));
  }
}

TEST(RunExperimentWithExhaustedLossScale, FailsOnEveryRank) {
  Experiment experiment = TinyExperiment{.stage = 2, .ranks = 2, .dtype = DType::fp16}.make();
  experiment.ds_config["fp16"] = {{"enabled", true}, {"initial_scale_power", 0}};
  experiment.ds_config["optimizer"] = {{"type", "AdamW"}, {"params", {{"lr", 1e30}}}};

  const auto outcomes = run_on_cpus(experiment);

  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(std::holds_alternative<Failed>(outcome));
    EXPECT_EQ(std::get<Failed>(outcome).kind, FailureKind::error);
  }
}

/// Works until its first update.
class BrokenDevice final : public DryDevice {
 public:
  BrokenDevice(Bytes limit, bool broken) : DryDevice(limit), broken_(broken) {}

  void spend_host_time(Seconds time) override { host_time_ += time; }
  void trim() override { ++trims_; }

  Seconds host_time() const { return host_time_; }
  int trims() const { return trims_; }

 private:
  void account(const Work& work) override {
    if (broken_ && work.operation == "adam") {
      throw std::runtime_error("the device fell off the bus");
    }
  }

  bool broken_;
  Seconds host_time_ = 0;
  int trims_ = 0;
};

TEST(RunExperimentOnABrokenDevice, PropagatesItsExceptionAndEndsTheOthers) {
  const Experiment experiment = TinyExperiment{.stage = 1, .ranks = 3}.make();
  std::vector<int> aborted(3);
  const auto run = [&] {
    test::run_on_ranks(3, [&](int rank, test::ThreadTeam& team) {
      BrokenDevice device(experiment.settings.memory_limit, rank == 1);
      DryCollectives collectives(device, rank, 3);
      test::ThreadGroup group(team, rank);
      try {
        run_experiment(experiment, device, collectives, group);
      } catch (const ExperimentAborted&) {
        aborted[static_cast<std::size_t>(rank)] = 1;
        EXPECT_EQ(device.memory().in_use(), 0U);
        throw;
      }
    });
  };

  EXPECT_THAT(run, testing::ThrowsMessage<std::runtime_error>("the device fell off the bus"));
  EXPECT_EQ(aborted, (std::vector<int>{1, 0, 1}));
}

TEST(RunExperimentOnABrokenDevice, LeavesNothingBehindForTheNextExperiment) {
  Experiment experiment = TinyExperiment{.stage = 1, .ranks = 1}.make();
  experiment.settings.host_overhead.at(HostEvent::gradient_hook) = 1;
  BrokenDevice device(experiment.settings.memory_limit, true);
  DryCollectives collectives(device, 0, 1);
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);

  EXPECT_THROW(run_experiment(experiment, device, collectives, group), std::runtime_error);

  EXPECT_EQ(device.memory().in_use(), 0U);
  EXPECT_EQ(device.trims(), 1);
  const Seconds before = device.host_time();
  EXPECT_GT(before, 0);
  device.host_event(HostEvent::gradient_hook);
  EXPECT_EQ(device.host_time(), before);
  const int polls = group.polls;
  device.tick();
  EXPECT_EQ(group.polls, polls);
}

// A backend's device outlives experiments.
TEST(RunExperimentOnAUsedDevice, IsAsOnANewOne) {
  TinyExperiment tiny{.stage = 2, .ranks = 1};
  const Experiment experiment = tiny.make();
  const auto fresh = std::get<Measured>(run_on_cpus(experiment).front());
  cpu::CpuDevice device(experiment.settings.memory_limit);
  test::ThreadTeam team(1);
  test::ThreadCollectives collectives(device, team, 0);
  test::ThreadGroup group(team, 0);
  tiny.stage = 3;

  run_experiment(tiny.make(), device, collectives, group);
  const auto used = std::get<Measured>(run_experiment(experiment, device, collectives, group));

  EXPECT_EQ(used.peak_memory, fresh.peak_memory);
  EXPECT_EQ(used.first_loss, fresh.first_loss);
  EXPECT_TRUE(used.ledger.same_work(fresh.ledger));
}

/// Its clock goes on a second each time it is read, its energy 100 J at each reading.
class TalkingDevice final : public DryDevice {
 public:
  using DryDevice::DryDevice;

  Seconds now() const override { return time_++; }
  std::optional<DeviceReading> reading() override {
    DeviceReading reading;
    reading.energy_j = 100.0 * ++readings_;
    if (readings_ == 2) reading.throttle_reasons = {"heat"};
    EXPECT_EQ(ledger().collectives().empty(), readings_ == 1);
    return reading;
  }

  std::optional<DevicePeaks> peaks(DType dtype) override {
    EXPECT_EQ(memory().in_use(), 0);
    EXPECT_EQ(dtype, DType::fp32);
    return DevicePeaks{2e12, 1e12};
  }

  int readings() const { return readings_; }

 private:
  int readings_ = 0;
  mutable Seconds time_ = 0;
};

TEST(RunExperimentOnATalkingDevice, ReadsItBeforeAndAfterTheMeasuredSteps) {
  Experiment experiment = TinyExperiment{.stage = 1, .ranks = 1}.make();
  experiment.settings.measure_steps = 4;
  experiment.settings.warmup_steps = 0;
  TalkingDevice device(experiment.settings.memory_limit);
  DryCollectives collectives(device, 0, 1);
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);

  const auto measured = std::get<Measured>(run_experiment(experiment, device, collectives, group));

  EXPECT_EQ(device.readings(), 2);
  EXPECT_EQ(measured.device_peaks, (DevicePeaks{2e12, 1e12}));
  EXPECT_EQ(measured.device_use.value().energy_per_step_j, 100.0 / measured.steps);
  EXPECT_THAT(measured.device_use->throttle_reasons, testing::ElementsAre("heat"));
}

TEST(RunExperimentOnAUsedDevice, FindsNothingCached) {
  const Experiment experiment = caching_experiment(2, 1);
  Experiment larger = experiment;
  larger.ds_config["train_micro_batch_size_per_gpu"] = 16;
  larger.ds_config["train_batch_size"] = 48;
  const auto fresh = std::get<Measured>(run_on_cpus(experiment).front());
  cpu::CpuDevice device(experiment.settings.memory_limit);
  test::ThreadTeam team(1);
  test::ThreadCollectives collectives(device, team, 0);
  test::ThreadGroup group(team, 0);

  const auto before = std::get<Measured>(run_experiment(larger, device, collectives, group));
  const auto used = std::get<Measured>(run_experiment(experiment, device, collectives, group));

  EXPECT_GT(before.peak_memory.reserved, fresh.peak_memory.reserved);
  EXPECT_EQ(used.peak_memory, fresh.peak_memory);
}

// A GPU's fused attention needs no scratch, the CPU's does.
TEST(DryRunOfLongSequences, CountsTheScratchOfTheImitatedDevice) {
  TinyExperiment tiny{.stage = 3, .ranks = 1, .zero = {{"reduce_bucket_size", 1}}};
  tiny.model.vocab_size = 2;
  tiny.model.max_positions = 64;
  Experiment experiment = tiny.make();
  experiment.settings.sequence_length = 64;

  const auto outcomes = run_on_cpus(experiment);

  const auto& real = std::get<Measured>(outcomes.front()).peak_memory;
  const auto fused = std::get<Measured>(dry_run(experiment, 0).outcome).peak_memory;
  EXPECT_EQ(real, dry_peak(experiment, 0));
  EXPECT_GT(real.categories.at(MemoryCategory::temporaries),
            fused.categories.at(MemoryCategory::temporaries));
}

}  // namespace
}  // namespace dstune
