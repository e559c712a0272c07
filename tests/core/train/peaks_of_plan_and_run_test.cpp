// The peak that a plan foresees beside that of a run on sim: what is allocated is the same, and
// what is active is within what the plan allows.
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/train/run_experiment.hpp"
#include "core/train/training_step.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::peaks_of_plan_and_run_test {
namespace {

using test::TinyExperiment;

constexpr int kRanks = 4;
constexpr int kSteps = 3;

/// Its peak is in backward, and stage 3 gathers every tensor and releases it after each module.
TinyExperiment overlapping(int stage) {
  TinyExperiment tiny{stage, kRanks, 16, 2, DType::bf16};
  tiny.zero = {{"overlap_comm", true},
               {"reduce_bucket_size", 300},
               {"stage3_param_persistence_threshold", 0},
               {"stage3_max_reuse_distance", 0}};
  return tiny;
}

std::vector<TinyExperiment> experiments() {
  std::vector<TinyExperiment> all;
  for (const int stage : {0, 1, 2, 3}) {
    for (const bool overlaps : {false, true}) {
      TinyExperiment tiny = overlapping(stage);
      tiny.zero["overlap_comm"] = overlaps;
      all.push_back(tiny);
      if (stage < 3) continue;
      tiny.zero["stage3_prefetch_bucket_size"] = 0;
      all.push_back(tiny);
      tiny.zero["stage3_prefetch_bucket_size"] = 500;
      tiny.zero["stage3_max_live_parameters"] = 0;
      all.push_back(tiny);
    }
  }
  return all;
}

/// So slow that the host runs ahead of it as far as its waits allow.
const sim::SimSpeed kSlow{.flops_per_s = 1, .bytes_per_s = 1, .latency = 1};

PeakMemory peak_on_sim(const Experiment& experiment, int rank, sim::SimSpeed speed = kSlow) {
  sim::SimDevice device(experiment.settings.memory_limit, speed);
  sim::SimCollectives collectives(device, rank, experiment.ranks);
  TrainingStep step(experiment.settings, make_step_config(experiment), device, collectives);
  for (int i = 0; i < kSteps; ++i) step.run();
  return device.memory().peak();
}

PeakMemory planned_peak(const Experiment& experiment, int rank) {
  return std::get<Measured>(dry_run(experiment, rank).outcome).peak_memory;
}

void expect_foreseen(const PeakMemory& run, const PeakMemory& plan, const std::string& name) {
  EXPECT_EQ(run.allocated, plan.allocated) << name;
  EXPECT_EQ(run.phase, plan.phase) << name;
  EXPECT_EQ(run.at_peak, plan.at_peak) << name;
  EXPECT_EQ(run.categories, plan.categories) << name;
  EXPECT_GE(run.active, run.allocated) << name;
  EXPECT_LE(run.active, plan.active) << name;
}

TEST(PeaksOfPlanAndRun, AreTheSame) {
  bool was_in_flight = false;
  for (const TinyExperiment& tiny : experiments()) {
    const Experiment experiment = tiny.make();
    for (int rank = 0; rank < kRanks; ++rank) {
      const PeakMemory run = peak_on_sim(experiment, rank);
      expect_foreseen(run, planned_peak(experiment, rank), tiny.name());
      was_in_flight |= run.in_flight() > 0;
    }
  }
  EXPECT_TRUE(was_in_flight) << "so that the streams make a difference";
}

// However far the host runs ahead: its device may take no time at all, or an hour for each byte.
TEST(PeaksOfPlanAndRun, DoNotDependOnTheSpeedOfTheDevice) {
  const TinyExperiment tiny = overlapping(3);
  const Experiment experiment = tiny.make();
  const PeakMemory plan = planned_peak(experiment, 0);

  for (const double bytes_per_s : {1e30, 1e12, 1.0 / 3600}) {
    const sim::SimSpeed speed{.flops_per_s = 1e30, .bytes_per_s = bytes_per_s, .latency = 0};
    expect_foreseen(peak_on_sim(experiment, 0, speed), plan, tiny.name());
  }
}

TEST(PeaksOfPlanAndRun, WhatIsInFlightIsWaitedForWhereThereIsNoRoom) {
  TinyExperiment tiny = overlapping(3);
  tiny.zero["stage3_prefetch_bucket_size"] = 0;
  tiny.zero["stage3_max_live_parameters"] = 0;
  Experiment experiment = tiny.make();
  const Bytes needed = planned_peak(experiment, 0).allocated;
  EXPECT_GT(peak_on_sim(experiment, 0).active, needed);

  experiment.settings.memory_limit = needed;
  const PeakMemory run = peak_on_sim(experiment, 0);
  const PeakMemory plan = planned_peak(experiment, 0);

  EXPECT_EQ(run.allocated, needed);
  EXPECT_EQ(run.active, needed);
  EXPECT_EQ(plan.active, needed);
  experiment.settings.memory_limit = needed - 1;
  EXPECT_THROW(peak_on_sim(experiment, 0), OutOfMemoryError);
  EXPECT_TRUE(std::holds_alternative<OutOfMemory>(dry_run(experiment, 0).outcome));
}

}  // namespace
}  // namespace dstune::peaks_of_plan_and_run_test
