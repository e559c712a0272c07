#include "core/search/predict/dry_step.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "core/device/rates/measure_host_rates.hpp"
#include "core/experiment/step_config.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/train/training_step.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::dry_step_test {
namespace {

using test::TinyExperiment;

constexpr Bytes kPlenty = Bytes{1} << 40U;

const json::object kOffload = {{"offload_optimizer", {{"device", "cpu"}}}};

RunSettings sim_settings() {
  RunSettings settings;
  settings.backend = "sim";
  return settings;
}

/// The second step on the sim backend's own device.
Seconds simulated_step(const Experiment& experiment, const HostRates& host = {}) {
  sim::SimDevice device(kPlenty, {.host = host});
  sim::SimCollectives collectives(device, 0, experiment.ranks);
  TrainingStep step(experiment.settings, make_step_config(experiment), device, collectives);
  step.run();
  return step.run().total;
}

Seconds predicted_step(const Experiment& experiment) {
  return dry_step_time(experiment, estimated_rates(sim_settings())).value().total();
}

class DryStep : public testing::TestWithParam<TinyExperiment> {};

TEST_P(DryStep, TakesWhatTheSimulationTakes) {
  const Experiment experiment = GetParam().make();

  const Seconds simulated = simulated_step(experiment);

  EXPECT_NEAR(predicted_step(experiment), simulated, 1e-9 * simulated);
}

INSTANTIATE_TEST_SUITE_P(
    Knobs, DryStep,
    testing::Values(
        TinyExperiment{.stage = 0, .ranks = 1, .micro_batch = 4},
        TinyExperiment{.stage = 0, .ranks = 4, .accumulation_steps = 3},
        TinyExperiment{.stage = 1, .ranks = 8, .accumulation_steps = 2},
        TinyExperiment{
            .stage = 2, .ranks = 3, .zero = {{"reduce_bucket_size", 300}, {"overlap_comm", true}}},
        TinyExperiment{.stage = 3, .ranks = 4, .zero = {{"overlap_comm", false}}},
        TinyExperiment{
            .stage = 3,
            .ranks = 4,
            .accumulation_steps = 9,
            .zero = {{"stage3_param_persistence_threshold", 0}, {"stage3_max_live_parameters", 0}}},
        TinyExperiment{.stage = 2, .ranks = 2, .accumulation_steps = 12},
        TinyExperiment{.stage = 1, .ranks = 2, .zero = kOffload},
        TinyExperiment{.stage = 2,
                       .ranks = 4,
                       .accumulation_steps = 9,
                       .dtype = DType::bf16,
                       .zero = kOffload},
        TinyExperiment{.stage = 3, .ranks = 2, .dtype = DType::fp16, .zero = kOffload}));

/// A group in which nobody waits for anybody.
class OneRank final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<std::byte> /*data*/, int /*root*/) override {}
  bool vote(bool ok) override { return ok; }
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  void poll() override {}
};

/// A host as no guess has it.
HostRates another_host() {
  HostRates host;
  host.at(Tier::pinned, Transfer::device_to_host).together = {3e-6, 40e9};
  host.at(Tier::pinned, Transfer::host_to_device).together = {4e-6, 30e9};
  host.at(Tier::pageable, Transfer::device_to_host).together = {30e-6, 5e9};
  host.at(Tier::pageable, Transfer::host_to_device).together = {20e-6, 6e9};
  host.passes = {{1, 3e9}};
  return host;
}

TEST(DryStepTime, OfAnOffloadedStepIsThatOfTheMeasuredHost) {
  for (const int stage : {1, 2, 3}) {
    const Experiment experiment =
        TinyExperiment{.stage = stage, .ranks = 2, .dtype = DType::bf16, .zero = kOffload}.make();
    sim::SimDevice device(kPlenty, {.host = another_host()});
    OneRank group;
    MachineRates rates = estimated_rates(sim_settings());
    const Seconds guessed = dry_step_time(experiment, rates).value().total();

    rates.host = measure_host_rates(device, group, {});

    const Seconds simulated = simulated_step(experiment, another_host());
    EXPECT_NEAR(dry_step_time(experiment, rates).value().total(), simulated, 1e-5 * simulated);
    EXPECT_GT(std::fabs(guessed - simulated), 1e-2 * simulated) << "else nothing is shown";
  }
}

TEST(DryStepTime, IsNoneForWhatIsNotModelled) {
  const auto experiment = TinyExperiment{.stage = 3, .zero = {{"cpu_offload_param", true}}}.make();

  EXPECT_FALSE(dry_step_time(experiment, estimated_rates(sim_settings())));
}

TEST(DryStepTime, GoesToWhatTheStepDoes) {
  const auto experiment = TinyExperiment{.stage = 2, .ranks = 4}.make();

  const StepTime time = dry_step_time(experiment, estimated_rates(sim_settings())).value();

  EXPECT_GT(time.at(StepPart::products) + time.at(StepPart::product_memory), 0);
  EXPECT_GT(time.at(StepPart::attention), 0);
  EXPECT_GT(time.at(StepPart::update), 0);
  EXPECT_GT(time.at(StepPart::reduce) + time.at(StepPart::all_reduce), 0);
  EXPECT_GT(time.at(StepPart::all_gather), 0);
  EXPECT_EQ(time.at(StepPart::constant), 0);
}

TEST(DryStepTime, HasNoMessagesOnOneRank) {
  const auto experiment = TinyExperiment{.stage = 2, .ranks = 1}.make();

  const StepTime time = dry_step_time(experiment, estimated_rates(sim_settings())).value();

  EXPECT_EQ(time.at(StepPart::messages), 0);
  EXPECT_EQ(time.at(StepPart::all_gather), 0);
}

}  // namespace
}  // namespace dstune::dry_step_test
