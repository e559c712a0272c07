#include "core/search/tuners/tune.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "tests/support/simulated_machine.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::tune_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::make_tuning_config;
using testing_support::MemoryDirectory;
using testing_support::run_tuning;
using testing_support::saturating;
using testing_support::SimulatedMachine;
using testing_support::SimulatedRun;

std::vector<std::string> of_stage(const SimulatedRun& run, const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& name : run.started) {
    if (name.starts_with(prefix)) names.push_back(name);
  }
  return names;
}

TEST(Tune, ExploresTheStagesInOrder) {
  const auto run = run_tuning(make_tuning_config(400 + 4 * 10), SimulatedMachine());

  EXPECT_THAT(run.started,
              ElementsAre("z0_gas1_tmbspg1", "z0_gas1_tmbspg4", "z0_gas2_tmbspg2",     //
                          "z0_gas1_tmbspg3",                                           //
                          "z1_gas1_tmbspg4", "z1_gas1_tmbspg14", "z1_gas2_tmbspg7",    //
                          "z1_gas1_tmbspg12",                                          //
                          "z2_gas1_tmbspg14", "z2_gas1_tmbspg24", "z2_gas1_tmbspg21",  //
                          "z3_gas1_tmbspg24", "z3_gas1_tmbspg34", "z3_gas1_tmbspg31"));
  EXPECT_EQ(run.best, "z0_gas1_tmbspg1") << "all are equal: the first stays";
  EXPECT_EQ(run.result.records.size(), run.started.size());
}

TEST(Tune, FindsTheFastestStageAndMicroBatch) {
  SimulatedMachine machine;
  machine.samples_per_s = [](const Point& point) {
    return saturating({0, point.micro_batch, 1}) * (point.stage == 2 ? 1.1 : 1);
  };

  const auto run = run_tuning(make_tuning_config(400 + 4 * 10), machine);

  EXPECT_EQ(run.best, "z2_gas1_tmbspg24");
}

TuningConfig guided_config(const std::vector<std::int64_t>& micro_batches) {
  TuningConfig config = make_tuning_config(1000);
  config.tuner = "guided";
  config.stages = {1};
  config.micro_batches = micro_batches;
  return config;
}

TEST(Tune, TheWorkersHearOfRankZeroWhileItWalksTheStepsOfASpace) {
  TuningConfig config = guided_config({1, 2});
  config.space.with_default = true;

  EXPECT_GT(run_tuning(config, SimulatedMachine()).touches, 0);
}

TEST(Tune, MeasuresNothingOfTheMachineWhereThereIsNoChoice) {
  const auto one = run_tuning(guided_config({1}), SimulatedMachine()).started;
  const auto two = run_tuning(guided_config({1, 2}), SimulatedMachine()).started;

  EXPECT_THAT(one, testing::Not(Contains("machine")));
  EXPECT_THAT(two, Contains("machine"));
}

TEST(Tune, MinimisesLatency) {
  SimulatedMachine machine;
  machine.samples_per_s = [](const Point& point) { return point.stage == 1 ? 120.0 : 100.0; };
  auto config = make_tuning_config(400 + 4 * 10);
  config.autotuning.metric = Metric::latency;

  const auto run = run_tuning(config, machine);

  EXPECT_EQ(run.best, "z1_gas1_tmbspg1");
}

TEST(Tune, MaximisesFlops) {
  SimulatedMachine machine;
  machine.samples_per_s = [](const Point& point) { return saturating({0, point.micro_batch, 1}); };
  auto config = make_tuning_config(400 + 4 * 10);
  config.autotuning.metric = Metric::flops;

  EXPECT_EQ(run_tuning(config, machine).best, "z3_gas1_tmbspg34");
}

TEST(Tune, CarriesABetterMetricOnEvenIfTheMicroBatchIsNotLarger) {
  SimulatedMachine machine;
  machine.states = {300, 200, 200, 100};
  machine.samples_per_s = [](const Point& point) {
    return point.micro_batch == 14 ? 120.0 + 30 * point.stage : 100.0;
  };
  auto config = make_tuning_config(300 + 14 * 10);
  config.stages = {0, 1, 2};

  const auto run = run_tuning(config, machine);

  EXPECT_THAT(of_stage(run, "z1_"), Contains("z1_gas1_tmbspg24"));
  EXPECT_EQ(of_stage(run, "z2_").front(), "z2_gas1_tmbspg24") << "stage 1's largest";
  EXPECT_EQ(run.best, "z1_gas1_tmbspg14");
}

TEST(Tune, SkipsAStageThatFitsFewerMicroBatches) {
  SimulatedMachine machine;
  machine.states = {100, 200, 50, 300};
  machine.samples_per_s = saturating;

  const auto run = run_tuning(make_tuning_config(400), machine);

  EXPECT_THAT(of_stage(run, "z1_"), testing::IsEmpty());
  EXPECT_THAT(of_stage(run, "z3_"), testing::IsEmpty());
  EXPECT_EQ(of_stage(run, "z2_").front(), "z2_gas1_tmbspg30");
}

TEST(Tune, ExploresEveryStageThatFitsForLatency) {
  SimulatedMachine machine;
  machine.states = {100, 200, 50, 300};
  auto config = make_tuning_config(400);
  config.autotuning.metric = Metric::latency;

  const auto run = run_tuning(config, machine);

  EXPECT_EQ(of_stage(run, "z3_").front(), "z3_gas1_tmbspg1");
}

TEST(Tune, LeavesOutStagesThatDoNotFit) {
  const auto run = run_tuning(make_tuning_config(309), SimulatedMachine());

  EXPECT_THAT(of_stage(run, "z0_"), testing::IsEmpty());
  EXPECT_THAT(of_stage(run, "z1_"), testing::IsEmpty());
  EXPECT_FALSE(of_stage(run, "z2_").empty());
}

TEST(Tune, NeverRunsAnExperimentTwice) {
  SimulatedMachine machine;
  machine.predicted_too_little = 40;
  machine.samples_per_s = saturating;

  for (const int groups : {1, 3}) {
    const auto run = run_tuning(make_tuning_config(460), machine, groups);

    const std::set<std::string> different(run.started.begin(), run.started.end());
    EXPECT_EQ(different.size(), run.started.size());
  }
}

TEST(Tune, KeepsTheUsersZeroSettingsInEveryExperiment) {
  auto config = make_tuning_config(460);
  config.deepspeed.set("zero_optimization",
                       {{"reduce_bucket_size", 5000}, {"overlap_comm", false}});

  const auto run = run_tuning(config, SimulatedMachine());

  for (const auto& record : run.result.records) {
    const auto& zero = record.experiment.ds_config.json().at("zero_optimization").as_object();
    EXPECT_EQ(zero.at("reduce_bucket_size"), 5000);
    EXPECT_EQ(zero.at("overlap_comm"), false);
    EXPECT_TRUE(zero.contains("stage"));
  }
  ASSERT_TRUE(run.result.best);
}

TEST(Tune, TakesTheSmallerStageUnlessTheOtherIsBetterByMoreThanNoise) {
  SimulatedMachine machine;
  double factor = 1.03;
  machine.samples_per_s = [&](const Point& point) { return point.stage == 0 ? 100 : 100 * factor; };
  machine.noise_percent = 2.5;  // together 3.5 %
  const auto config = make_tuning_config(460);

  const auto within_noise = run_tuning(config, machine);
  factor = 1.04;
  const auto beyond_noise = run_tuning(config, machine);

  EXPECT_THAT(within_noise.best, HasSubstr("z0_"));
  EXPECT_THAT(beyond_noise.best, HasSubstr("z1_"));
}

TEST(Tune, KnowsTheModelWithoutARun) {
  const auto run = run_tuning(make_tuning_config(109), SimulatedMachine());

  EXPECT_THAT(run.started, testing::IsEmpty());
  EXPECT_EQ(run.result.model_info.num_params,
            make_model_parameters(make_tuning_config(1).settings.model).total());
  EXPECT_EQ(run.result.model_info.activation_bytes_per_micro_batch, 10U);
}

TEST(Tune, BelievesWhatTheUserSaysOfTheModel) {
  auto config = make_tuning_config(109);
  config.num_params = 125'000'000;

  const auto info = run_tuning(config, SimulatedMachine()).result.model_info;

  EXPECT_EQ(info.num_params, 125'000'000);
  EXPECT_EQ(info.trainable_num_params, 125'000'000);
}

TEST(Tune, SaysThatNothingFits) {
  const auto run = run_tuning(make_tuning_config(109), SimulatedMachine());

  EXPECT_FALSE(run.result.best);
  EXPECT_TRUE(run.result.nothing_fits);
  EXPECT_EQ(run.result.full, Stores().set(number_of(Store::device)));
  EXPECT_THAT(run.result.records, testing::IsEmpty());
}

TEST(Tune, TellsFailuresFromWhatDoesNotFit) {
  SimulatedMachine machine;
  machine.fails = [](const Point&) { return true; };

  const auto run = run_tuning(make_tuning_config(460), machine);

  EXPECT_FALSE(run.result.best);
  EXPECT_FALSE(run.result.nothing_fits);
  EXPECT_FALSE(run.result.stopped);
}

TEST(Tune, GoesOnWithTheOtherStagesIfOneFails) {
  SimulatedMachine machine;
  machine.fails = [](const Point& point) { return point.stage < 2; };

  EXPECT_THAT(run_tuning(make_tuning_config(460), machine).best, HasSubstr("z2_"));
}

TEST(Tune, RecordsAStageThatTheBackendCannotRun) {
  const auto config = make_tuning_config(460);
  const MemoryDirectory directory;
  Journal journal(directory / "journal.jsonl", Journal::Mode::create, {{}, "cpu", "simulated"});
  testing_support::ScriptedPool pool(
      testing_support::workers_on("a", 1, 2),
      [](const Experiment&) -> Outcome { return Skipped{"offload_optimizer"}; });
  Scheduler scheduler(pool, journal, {}, {});
  const auto predictor = [](const Experiment&, int) -> Outcome {
    return Skipped{"offload_optimizer"};
  };

  const auto result = tune(config, 2, scheduler, predictor);

  EXPECT_FALSE(result.best);
  EXPECT_FALSE(result.nothing_fits);
  EXPECT_THAT(pool.names(), ElementsAre("z0_gas1_tmbspg1", "z1_gas1_tmbspg1", "z2_gas1_tmbspg1",
                                        "z3_gas1_tmbspg1"));
}

TEST(Tune, TellsThatNothingFitsWhereOtherStagesAreNotModelled) {
  const auto config = make_tuning_config(109);
  const MemoryDirectory directory;
  Journal journal(directory / "journal.jsonl", Journal::Mode::create, {{}, "cpu", "simulated"});
  const SimulatedMachine machine;
  const auto is_modelled = [](const Experiment& experiment) {
    return testing_support::point_of(experiment).stage < 3;
  };
  testing_support::ScriptedPool pool(
      testing_support::workers_on("a", 1, 2), [&](const Experiment& experiment) -> Outcome {
        return is_modelled(experiment) ? machine.run(experiment) : Skipped{"amp.enabled"};
      });
  Scheduler scheduler(pool, journal, {}, {});
  const auto predictor = [&, real = machine.predictor()](const Experiment& experiment,
                                                         int rank) -> Outcome {
    return is_modelled(experiment) ? real(experiment, rank) : Skipped{"amp.enabled"};
  };

  const auto result = tune(config, 2, scheduler, predictor);

  EXPECT_FALSE(result.best);
  EXPECT_TRUE(result.nothing_fits);
}

TEST(Tune, ResumesFromTheJournalWithoutRepeating) {
  SimulatedMachine machine;
  machine.samples_per_s = saturating;
  const auto config = make_tuning_config(460);
  const auto whole = run_tuning(config, machine);
  for (std::size_t finished = 0; finished <= whole.started.size(); finished += 3) {
    const MemoryDirectory directory;
    const auto path = directory / "journal.jsonl";
    std::size_t asked = 0;
    const auto stop = [&] { return asked++ > 2 * finished; };

    const auto first = run_tuning(config, machine, 1, path, Journal::Mode::create, stop);
    const auto second = run_tuning(config, machine, 1, path, Journal::Mode::resume);

    auto together = first.started;
    together.insert(together.end(), second.started.begin(), second.started.end());
    EXPECT_EQ(together, whole.started);
    EXPECT_EQ(second.best, whole.best);
    EXPECT_EQ(first.result.stopped, first.started.size() < whole.started.size());
  }
}

TEST(PlanExperiments, AreThoseOfARunWhereNoneIsBetter) {
  const auto config = make_tuning_config(460);
  const SimulatedMachine machine;

  const auto planned = plan_experiments(config, 2, plan_stages(config, 2, machine.predictor()));

  std::vector<std::string> names;
  for (const auto& experiment : planned) names.push_back(experiment.name);
  EXPECT_EQ(names, run_tuning(config, machine).started);
}

}  // namespace
}  // namespace dstune::tune_test
