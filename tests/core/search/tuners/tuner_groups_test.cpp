// Tuning with several groups of ranks at once.
#include <algorithm>
#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/tuners/tune.hpp"
#include "tests/support/simulated_machine.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::tuner_groups_test {
namespace {

using testing::HasSubstr;
using testing_support::make_tuning_config;
using testing_support::MemoryDirectory;
using testing_support::run_tuning;
using testing_support::saturating;
using testing_support::SimulatedMachine;

/// The answer must not depend on how many experiments run at once.
class TuneWithGroups : public testing::TestWithParam<int> {
 protected:
  static void expect_the_answer_of_one_group(const TuningConfig& config,
                                             const SimulatedMachine& machine) {
    const auto alone = run_tuning(config, machine, 1);
    const auto together = run_tuning(config, machine, GetParam());

    EXPECT_EQ(together.best, alone.best);
    EXPECT_THAT(together.started, testing::IsSupersetOf(alone.started));
  }
};

TEST_P(TuneWithGroups, FindsTheSameBestWithAnExactPrediction) {
  SimulatedMachine machine;
  machine.samples_per_s = saturating;

  expect_the_answer_of_one_group(make_tuning_config(460), machine);
}

TEST_P(TuneWithGroups, FindsTheSameBestWithAWrongPrediction) {
  for (const Bytes error : {20U, 90U, 155U}) {
    SimulatedMachine machine;
    machine.samples_per_s = saturating;
    machine.predicted_too_little = error;
    expect_the_answer_of_one_group(make_tuning_config(560), machine);
    machine.predicted_too_little = 0;
    machine.predicted_too_much = error;
    expect_the_answer_of_one_group(make_tuning_config(560), machine);
  }
}

TEST_P(TuneWithGroups, FindsTheSameBestOnARaggedMachine) {
  for (int seed = 0; seed < 20; ++seed) {
    SimulatedMachine machine;
    machine.predicted_too_little = static_cast<Bytes>(seed * 7);
    machine.samples_per_s = [seed](const Point& point) {
      const auto x = static_cast<double>(point.micro_batch * 3 + point.stage * 5 +
                                         point.accumulation_steps * 11 + seed);
      return 100 + 20 * std::sin(x * x);
    };
    machine.fails = [seed](const Point& point) {
      return (point.micro_batch * 5 + point.stage + seed) % 13 == 0;
    };
    auto config = make_tuning_config(560);
    if (seed % 3 == 1) config.autotuning.max_train_batch_size = 40;
    if (seed % 3 == 2) config.autotuning.metric = Metric::latency;
    if (seed % 4 == 3) config.autotuning.tuner_num_trials = 7;

    expect_the_answer_of_one_group(config, machine);
  }
}

TEST_P(TuneWithGroups, RepeatsTheBestOfEveryStageAloneAfterTheRest) {
  SimulatedMachine machine;
  machine.samples_per_s = saturating;

  const auto run = run_tuning(make_tuning_config(460), machine, GetParam());

  const auto first = std::find_if(run.started.begin(), run.started.end(),
                                  [](const auto& name) { return name.ends_with("_alone"); });
  ASSERT_EQ(run.started.end() - first, 4);
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_THAT(first[stage], testing::StartsWith("z" + std::to_string(stage)));
  }
  EXPECT_FALSE(run.best.ends_with("_alone"));
}

TEST_P(TuneWithGroups, RunsAsManyAtOnceAsThereAreGroups) {
  const auto config = make_tuning_config(560);
  const MemoryDirectory directory;
  Journal journal(directory / "journal.jsonl", Journal::Mode::create, {{}, "cpu", "simulated"});
  const SimulatedMachine machine;
  testing_support::ScriptedPool pool(
      testing_support::workers_on("a", 1, 2 * GetParam()),
      [&](const Experiment& experiment) { return machine.run(experiment); });
  Scheduler scheduler(pool, journal, {}, {});

  tune(config, 2, scheduler, machine.predictor());

  int most = 0;
  for (const auto& start : pool.starts()) most = std::max(most, start.running);
  EXPECT_EQ(most, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Groups, TuneWithGroups, testing::Values(2, 3, 4));

TEST(Tune, EndsWithWhatItHasIfTooFewWorkersAreLeft) {
  const auto config = make_tuning_config(400 + 4 * 10);
  const MemoryDirectory directory;
  Journal journal(directory / "journal.jsonl", Journal::Mode::create, {{}, "cpu", "simulated"});
  const SimulatedMachine machine;
  testing_support::ScriptedPool pool(
      testing_support::workers_on("a", 1, 4),
      [&](const Experiment& experiment) { return machine.run(experiment); });
  pool.lose_worker_in("z0_gas1_tmbspg4");
  Scheduler scheduler(pool, journal, {}, {});

  const auto result = tune(config, 4, scheduler, machine.predictor());

  EXPECT_TRUE(result.stopped);
  ASSERT_TRUE(result.shortage);
  EXPECT_EQ(result.shortage->experiment, "z0_gas1_tmbspg4");
  EXPECT_EQ(result.shortage->left, 3);
  EXPECT_EQ(result.largest_group, 3);
  ASSERT_TRUE(result.best) << "provisional";
  EXPECT_EQ(result.best->experiment.name, "z0_gas1_tmbspg1");
}

TEST(Tune, NamesTheLargestGroupThatTheBatchSizesAllow) {
  auto config = make_tuning_config(460);
  config.autotuning.min_train_micro_batch_size_per_gpu = 4;
  config.autotuning.max_train_batch_size = 8;
  const MemoryDirectory directory;
  Journal journal(directory / "journal.jsonl", Journal::Mode::create, {{}, "cpu", "simulated"});
  const SimulatedMachine machine;
  testing_support::ScriptedPool pool(
      testing_support::workers_on("a", 1, 2),
      [&](const Experiment& experiment) { return machine.run(experiment); });
  pool.lose_worker_in("z0_gas1_tmbspg4");
  Scheduler scheduler(pool, journal, {}, {});

  EXPECT_EQ(tune(config, 2, scheduler, machine.predictor()).largest_group, 1);
}

}  // namespace
}  // namespace dstune::tuner_groups_test
