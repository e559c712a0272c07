#include "core/search/tuners/whole_step.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scripted_pool.hpp"
#include "tests/support/simulated_machine.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::whole_step_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::MemoryDirectory;
using testing_support::ScriptedPool;

Measured steps_of(Seconds step_time, int micro_steps_run) {
  Measured measured;
  measured.steps = 3;
  measured.step_time = {step_time, step_time, step_time, 0};
  measured.step_time.noise_percent = 1;
  measured.micro_steps_run = micro_steps_run;
  return measured;
}

Record optimum(Seconds step_time, int micro_steps_run) {
  test::TinyExperiment tiny{.stage = 1, .ranks = 2, .accumulation_steps = 64};
  Record record{tiny.make(), steps_of(step_time, micro_steps_run), {1, 2}, 0, 10};
  record.experiment.name = "z1_gas64_tmbspg1";
  return record;
}

struct Check {
  std::optional<std::string> remark;
  std::vector<Experiment> run;
};

/// @param whole  what the first whole step takes, the second, ...
Check check(const Record& best, const std::vector<Outcome>& whole,
            std::optional<Seconds> time_budget = std::nullopt, int workers = 2) {
  const MemoryDirectory directory;
  Check result;
  ScriptedPool pool(testing_support::workers_on("node", 1, workers),
                    [&](const Experiment& experiment) {
                      result.run.push_back(experiment);
                      return whole.at(result.run.size() - 1);
                    });
  Journal journal(directory / "journal.jsonl", Journal::Mode::create,
                  {to_json(best.experiment.settings.model), "cpu", "simulated"});
  Scheduler scheduler(pool, journal, {}, {});
  TuningConfig config = testing_support::make_tuning_config(1000);
  config.time_budget = time_budget;
  result.remark = check_whole_step(config, best, {best}, scheduler);
  return result;
}

TEST(WholeStep, IsNotRunWhereEveryMicroStepWas) {
  const Check result = check(optimum(2, 0), {});

  EXPECT_EQ(result.remark, std::nullopt);
  EXPECT_THAT(result.run, IsEmpty());
}

TEST(WholeStep, IsOneStepOfTheOptimumWithAllOfItsMicroSteps) {
  const Check result = check(optimum(2, 6), {steps_of(2.04, 0)});

  ASSERT_EQ(result.run.size(), 1U);
  const Experiment& whole = result.run.front();
  EXPECT_EQ(whole.name, "z1_gas64_tmbspg1_whole1");
  EXPECT_TRUE(whole.settings.whole_steps);
  EXPECT_EQ(whole.settings.measure_steps, 1);
  EXPECT_TRUE(whole.is_reference);
  EXPECT_EQ(whole.ds_config.json(), optimum(2, 6).experiment.ds_config.json());
  ASSERT_TRUE(result.remark);
  EXPECT_THAT(*result.remark, HasSubstr("computed from 6 of its 64 micro-steps"));
  EXPECT_THAT(*result.remark, HasSubstr("2.0 % longer, which is within noise"));
}

TEST(WholeStep, IsRunTwiceWhereTheFirstOneWasDisturbed) {
  const Check result = check(optimum(2, 6), {steps_of(3, 0), steps_of(1.98, 0)});

  EXPECT_EQ(result.run.size(), 2U);
  EXPECT_EQ(result.run.back().name, "z1_gas64_tmbspg1_whole2");
  EXPECT_THAT(result.remark.value_or(""), HasSubstr("1.0 % less, which is within noise"));
}

TEST(WholeStep, SaysHowFarTheComputedOneIsOff) {
  const Check result = check(optimum(2, 6), {steps_of(3, 0), steps_of(2.4, 0)});

  EXPECT_THAT(result.remark.value_or(""),
              HasSubstr("both of two whole steps took 20.0 % longer or more, which is more"));
}

TEST(WholeStep, TellsWhyItHasNoTime) {
  const Check result = check(optimum(2, 6), {Failed{FailureKind::timeout, "no answer"}});

  EXPECT_THAT(result.remark.value_or(""), HasSubstr("no answer"));
}

TEST(WholeStep, IsNotRunWhereThereIsNoTimeForIt) {
  const Check slow = check(optimum(301, 6), {});
  const Check late = check(optimum(2, 6), {}, 11);

  EXPECT_THAT(slow.remark.value_or(""), HasSubstr("no time"));
  EXPECT_THAT(late.remark.value_or(""), HasSubstr("no time"));
  EXPECT_THAT(slow.run, IsEmpty());
  EXPECT_THAT(late.run, IsEmpty());
}

TEST(WholeStep, IsNotRunWhereNoGroupIsLeft) {
  const Check result = check(optimum(2, 6), {}, std::nullopt, 1);

  EXPECT_THAT(result.remark.value_or(""), HasSubstr("too few workers"));
  EXPECT_THAT(result.run, IsEmpty());
}

}  // namespace
}  // namespace dstune::whole_step_test
