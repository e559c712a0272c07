// run_experiment() on devices that break, talk, were used before or need scratch.
#include <optional>
#include <stdexcept>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "tests/core/train/run_on_cpus.hpp"

namespace dstune::run_experiment_on_devices_test {
namespace {

using test::caching_experiment;
using test::dry_peak;
using test::run_on_cpus;
using test::TinyExperiment;

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
  larger.ds_config.set("train_micro_batch_size_per_gpu", 16);
  larger.ds_config.set("train_batch_size", 48);
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
}  // namespace dstune::run_experiment_on_devices_test
