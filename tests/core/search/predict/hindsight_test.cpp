#include "core/search/predict/hindsight.hpp"

#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/predict/dry_step.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::hindsight_test {
namespace {

using test::TinyExperiment;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

Record measured(const Experiment& experiment, Seconds time) {
  Measured outcome;
  outcome.steps = 3;
  outcome.step_time = {time, time, time, 0};
  return {experiment, outcome, {}};
}

/// Groups of two, which take `factor` times what a predictor says that knows the same rates.
std::vector<Record> records(double factor, const MachineRates& rates) {
  StepTimePredictor physics(rates);
  std::vector<Record> all;
  for (const std::int64_t micro_batch : {1, 2, 3, 4, 6}) {
    const auto experiment = TinyExperiment{.ranks = 2, .micro_batch = micro_batch}.make();
    all.push_back(measured(experiment, factor * physics.predict(experiment).step_time));
  }
  return all;
}

MachineRates estimated() { return estimated_rates(TinyExperiment{}.make().settings); }

TEST(TaughtPredictor, HasLearntTheGroupsRecords) {
  auto all = records(2, estimated());
  all.push_back(measured(TinyExperiment{.ranks = 4}.make(), 1));

  EXPECT_EQ(taught_predictor(all, 2).value().quality().count, 5);
}

TEST(TaughtPredictor, KnowsTheMeasuredRates) {
  MachineRates rates = estimated();
  rates.launch *= 3;
  auto all = records(1, rates);
  Experiment machine = TinyExperiment{.ranks = 2}.make();
  machine.measures_machine = true;
  Measured outcome;
  outcome.machine_rates = rates;
  all.push_back({machine, outcome, {}});

  const auto predictor = taught_predictor(all, 2);

  EXPECT_DOUBLE_EQ(predictor.value().rates().of(DType::fp32).launch, rates.launch);
  EXPECT_EQ(predictor->quality().count, 5);
}

TEST(TaughtPredictor, IsNoneWhereNothingWasMeasured) {
  EXPECT_FALSE(taught_predictor({}, 2));
  EXPECT_FALSE(taught_predictor(records(1, estimated()), 3));
}

TEST(Hindsight, ComparesWithWhatTheOthersSay) {
  const auto all = records(1000, estimated());
  const auto predictor = taught_predictor(all, 2).value();

  EXPECT_THAT(hindsight(predictor, all.front()), StartsWith("predicted "));
}

/// Steps of which some swap to a drive, which takes four times what it is guessed to.
std::vector<Record> records_with_drive() {
  std::vector<Record> all;
  for (const char* device : {"cpu", "nvme"}) {
    for (const std::int64_t micro_batch : {1, 2, 3, 4}) {
      TinyExperiment tiny{.stage = 3, .micro_batch = micro_batch};
      tiny.model.hidden_size = 192;
      tiny.model.inner_size = 768;
      tiny.zero["offload_optimizer"] = {{"device", device}, {"nvme_path", "/"}};
      Experiment experiment = tiny.make();
      experiment.settings.host_memory_limit = kNoLimit;
      const StepTime time = *dry_step_time(experiment, estimated_rates(experiment.settings));
      Measured outcome = std::get<Measured>(dry_run(experiment, 0).outcome);
      const Seconds total = time.total() + 3 * time.at(StepPart::drive);
      outcome.steps = 3;
      outcome.step_time = {total, total, total, 0};
      all.push_back({experiment, outcome, {}});
    }
  }
  return all;
}

TEST(Hindsight, SaysHowFarOffTheGuessOfADriveIs) {
  const auto all = records_with_drive();
  const auto predictor = taught_predictor(all, 1).value();

  EXPECT_THAT(hindsight(predictor, all.front()), Not(HasSubstr("drive")));
  EXPECT_THAT(
      hindsight(predictor, all.back()),
      MatchesRegex("predicted .*; the drive takes (3.9|4.0|4.1) times as long as was guessed"));
}

TEST(Hindsight, IsSilentWhereNothingIsKnown) {
  const auto all = records(1, estimated());
  const auto predictor = taught_predictor(all, 2).value();

  EXPECT_EQ(hindsight(predictor, measured(TinyExperiment{.micro_batch = 9}.make(), 1)), "");
  EXPECT_EQ(hindsight(predictor, {all.front().experiment, Skipped{"no"}, {}}), "");
}

TEST(TaughtPredictor, HasLearntTheOneInAnyCase) {
  const auto all = records(2, estimated());

  for (const Record& one : all) {
    const auto predictor = taught_predictor(all, 2, 2, &one).value();
    EXPECT_TRUE(predictor.without_own(one.experiment)) << one.experiment.name;
  }
  EXPECT_EQ(taught_predictor(all, 2, 2, &all.front()).value().quality().count, 2);
  EXPECT_EQ(taught_predictor(all, 2, 2, &all.back()).value().quality().count, 3);
}

TEST(TaughtPredictor, LearnsNoMoreThanItIsTold) {
  EXPECT_EQ(taught_predictor(records(2, estimated()), 2, 3).value().quality().count, 3);
  EXPECT_EQ(taught_predictor(records(2, estimated()), 2, 9).value().quality().count, 5);
}

}  // namespace
}  // namespace dstune::hindsight_test
