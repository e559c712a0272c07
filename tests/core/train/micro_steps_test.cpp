#include "core/train/micro_steps.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/experiment/step_config.hpp"
#include "core/train/training_step.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::micro_steps_test {
namespace {

using test::TinyExperiment;

TEST(MicroStepPlan, RunsAllWhereAtMostSixAreAccumulated) {
  for (std::int64_t steps = 1; steps <= 6; ++steps) {
    EXPECT_EQ(plan_micro_steps(steps, MicroSteps::some).left_out, 0) << steps;
  }
}

TEST(MicroStepPlan, LeavesNothingOutWhereAllAreAskedFor) {
  EXPECT_EQ(plan_micro_steps(64, MicroSteps::all).left_out, 0);
}

TEST(MicroStepPlan, CountsEveryMicroStepOnce) {
  for (std::int64_t steps = 7; steps <= 300; ++steps) {
    const MicroStepPlan plan = plan_micro_steps(steps, MicroSteps::some);

    const std::int64_t run = steps - plan.left_out;
    const auto counted = static_cast<std::int64_t>(plan.counted());
    EXPECT_LE(run, 6) << steps;
    EXPECT_EQ(run - MicroStepPlan::kAlike + counted * MicroStepPlan::kAlike, steps);
    EXPECT_GE(plan.first_alike, 2) << "the first two are unlike the others";
    EXPECT_EQ(plan.first_alike + MicroStepPlan::kAlike + 1, run) << "the last one is by itself";
  }
}

struct Step {
  StepReport report;
  Ledger ledger;
  PeakMemory peak;
};

/// The second step on a machine in virtual time, in which equal micro-steps take equally long.
Step second_step(const Experiment& experiment, MicroSteps which) {
  sim::SimDevice device(Bytes{1} << 40U, {});
  sim::SimCollectives collectives(device, 0, experiment.ranks);
  TrainingStep step(experiment.settings, make_step_config(experiment), device, collectives);
  step.run(std::nullopt, which);
  const StepReport report = step.run(std::nullopt, which);
  return {report, device.ledger(), device.memory().peak()};
}

void expect_near(Seconds computed, Seconds whole, const std::string& what) {
  EXPECT_NEAR(computed, whole, 1e-9 * std::max(whole, 1e-6)) << what;
}

void expect_same(const Step& computed, const Step& whole) {
  expect_near(computed.report.total, whole.report.total, "total");
  expect_near(computed.report.forward, whole.report.forward, "forward");
  expect_near(computed.report.backward, whole.report.backward, "backward");
  expect_near(computed.report.optimizer, whole.report.optimizer, "optimizer");
  EXPECT_TRUE(computed.ledger.same_work(whole.ledger));
  expect_near(computed.ledger.exposed_time(), whole.ledger.exposed_time(), "exposed");
  expect_near(computed.ledger.communication_time(), whole.ledger.communication_time(), "messages");
  expect_near(computed.ledger.host_time(), whole.ledger.host_time(), "host");
  expect_near(computed.ledger.idle_time(), whole.ledger.idle_time(), "idle");
  EXPECT_EQ(computed.peak, whole.peak);
}

const json::object kOffload = {{"offload_optimizer", {{"device", "cpu"}, {"pin_memory", true}}}};

std::vector<TinyExperiment> experiments() {
  std::vector<TinyExperiment> all;
  for (const int stage : {0, 1, 2, 3}) {
    for (const bool overlap : {false, true}) {
      const json::object zero = {{"reduce_bucket_size", 300}, {"overlap_comm", overlap}};
      all.push_back({.stage = stage, .ranks = 4, .dtype = DType::bf16, .zero = zero});
    }
    if (stage > 0) all.push_back({.stage = stage, .ranks = 2, .zero = kOffload});
  }
  all.push_back({.stage = 3,
                 .ranks = 4,
                 .dtype = DType::fp16,
                 .zero = {{"stage3_param_persistence_threshold", 0},
                          {"stage3_max_live_parameters", 0},
                          {"stage3_prefetch_bucket_size", 500}}});
  all.push_back({.stage = 3,
                 .ranks = 2,
                 .dtype = DType::bf16,
                 .zero = {{"offload_param", {{"device", "cpu"}}},
                          {"offload_optimizer", {{"device", "cpu"}}}}});
  return all;
}

TEST(SomeMicroSteps, AreWorthTheWholeStep) {
  for (TinyExperiment tiny : experiments()) {
    for (const std::int64_t accumulated : {7, 8, 33, 64}) {
      tiny.accumulation_steps = accumulated;
      Experiment experiment = tiny.make();
      experiment.settings.host_overhead.at(HostEvent::gradient_hook) = 3e-6;
      experiment.settings.host_overhead.at(HostEvent::micro_step) = 5e-5;

      const Step computed = second_step(experiment, MicroSteps::some);
      const Step whole = second_step(experiment, MicroSteps::all);

      SCOPED_TRACE(tiny.name());
      expect_same(computed, whole);
      EXPECT_EQ(computed.report.micro_steps_run, accumulated % 2 == 1 ? 5 : 6);
      EXPECT_LT(computed.report.ran, whole.report.ran);
      EXPECT_EQ(whole.report.ran, whole.report.total);
      EXPECT_EQ(whole.report.micro_steps_run, 0);
    }
  }
}

TEST(SomeMicroSteps, AreAllWhereNoneIsLeftOut) {
  const Experiment experiment =
      TinyExperiment{.stage = 2, .ranks = 2, .accumulation_steps = 6}.make();

  const Step step = second_step(experiment, MicroSteps::some);

  EXPECT_EQ(step.report.micro_steps_run, 0);
  EXPECT_EQ(step.report.ran, step.report.total);
}

}  // namespace
}  // namespace dstune::micro_steps_test
