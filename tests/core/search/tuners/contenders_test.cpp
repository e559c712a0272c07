#include "core/search/tuners/contenders.hpp"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "tests/support/pool_search.hpp"

namespace dstune::contenders_test {
namespace {

using testing::ElementsAre;
using testing_support::make_record;

std::vector<std::string> names_of(const std::vector<Contender>& contenders) {
  std::vector<std::string> names;
  for (const auto& contender : contenders) names.push_back(contender.record.experiment.name);
  return names;
}

std::vector<Record> records_of(const std::vector<std::pair<std::string, Seconds>>& times) {
  std::vector<Record> records;
  for (const auto& [name, time] : times) records.push_back(make_record({name, {}, 0}, time, 0));
  return records;
}

TEST(ChooseContenders, TakesWhatIsWithinTheWindowBestFirst) {
  const auto records =
      records_of({{"c", 1.04}, {"slow", 1.2}, {"a", 1}, {"failed", 0}, {"b", 1.02}, {"d", 1.06}});

  EXPECT_THAT(names_of(choose_contenders(records, Metric::throughput, 0.05, 9)),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_of(choose_contenders(records, Metric::throughput, 0.05, 2)),
              ElementsAre("a", "b"));
}

TEST(ChooseContenders, TheSecondBestIsAlwaysOne) {
  EXPECT_THAT(names_of(choose_contenders(records_of({{"b", 3}, {"a", 1}, {"c", 4}}),
                                         Metric::latency, 0.05, 4)),
              ElementsAre("a", "b"));
  EXPECT_THAT(names_of(choose_contenders(records_of({{"a", 1}}), Metric::latency, 0.05, 4)),
              ElementsAre("a"));
}

TEST(ChooseContenders, OfExactTiesTheSimplestAreTakenWhateverTheirNamesAndOrder) {
  std::vector<Record> records;
  for (const int stage : {3, 2, 1, 0}) {
    for (const Bytes memory : {Bytes{2}, Bytes{1}}) {
      const json::object zero{{"stage", stage}};
      records.push_back(make_record(
          {concat(9 - stage, "_", memory), json::object{{"zero_optimization", zero}}, 0}, 1, 0));
      std::get<Measured>(records.back().outcome).peak_memory.allocated = memory;
    }
  }
  const auto contenders = names_of(choose_contenders(records, Metric::throughput, 0.05, 3));
  std::ranges::reverse(records);

  EXPECT_THAT(contenders, ElementsAre("9_1", "9_2", "8_1"));
  EXPECT_EQ(names_of(choose_contenders(records, Metric::throughput, 0.05, 3)), contenders);
}

// Squares of -0.03, 0, 0.03 about their mean: 0.0018, over 2 degrees.
TEST(RunToRun, PoolsAllRepetitions) {
  Contender three{.speeds = {0.97, 1, 1.03}};
  Contender single{.speeds = {7}};

  const Spread noise = run_to_run({three, single, {}});

  EXPECT_NEAR(noise.sd, 0.03, 1e-12);
  EXPECT_EQ(noise.freedom, 2);
  EXPECT_EQ(run_to_run({single}).freedom, 0);
}

// Both first measurements were 0.1 faster, which is flattery; what is left are -0.01 and 0.01.
TEST(RunToRun, FirstMeasurementsCountWithoutWhatTheyHaveInCommon) {
  Contender a{.speeds = {1}, .first = 1.11};
  Contender b{.speeds = {2}, .first = 2.09};

  const Spread noise = run_to_run({a, b});

  EXPECT_NEAR(noise.sd, std::sqrt(2 * 0.0001 / 2), 1e-12);  // each over sqrt(1 + 1/1)
  EXPECT_EQ(noise.freedom, 1);
}

// Without the bound the noise would be 0.1.
TEST(RunToRun, OneDisturbedFirstMeasurementHidesNothing) {
  Contender disturbed{.speeds = {1, 1.001}, .first = 1.3};
  Contender quiet{.speeds = {2, 2.001}, .first = 2};

  EXPECT_LT(run_to_run({disturbed, quiet}).sd, 0.0015);
}

TEST(RunToRun, IsAtLeastWhatTheStepsSay) {
  Contender a{.speeds = {1, 1.001}};
  a.last.emplace().steps = 4;
  a.last->step_time = {1, 1, 1, 2};

  EXPECT_NEAR(run_to_run({a}).sd, 1.2533 * 0.02 / 2, 1e-12);
}

// Two of each, noise 0.01: a standard error of 0.01. Student's t with 2 degrees of freedom lies
// outside of 4.303 in 5 of 100 cases.
TEST(IsToldApart, ByStudentsT) {
  Contender fast{.speeds = {1.0431, 1.0431}};
  Contender slow{.speeds = {1, 1}};

  EXPECT_TRUE(is_told_apart(fast, slow, {0.01, 2}, 0.05));
  EXPECT_FALSE(is_told_apart(slow, fast, {0.01, 2}, 0.05));
  EXPECT_FALSE(is_told_apart(fast, slow, {0.0101, 2}, 0.05));
  EXPECT_FALSE(is_told_apart(fast, slow, {0, 0}, 0.05)) << "nothing is known of noise";
  EXPECT_TRUE(is_told_apart(fast, slow, {0, 2}, 0.05)) << "there is none";
}

TEST(ChanceOfALook, AllLooksAtAllPairsShareFivePercent) {
  EXPECT_DOUBLE_EQ(chance_of_a_look(2), 0.05 / 4);
  EXPECT_DOUBLE_EQ(chance_of_a_look(4), 0.05 / 4 / 6);
}

// Of a standard normal number z the mean of max(z - 2, 0) is 0.0085, and that of max(z, 0) is
// 0.3989.
TEST(ExpectedLoss, IsThatOfANormalDistribution) {
  Contender fast{.speeds = {1.02, 1.02}};
  Contender slow{.speeds = {1, 1}};

  EXPECT_NEAR(expected_loss(slow, slow, 0.01), 0.01 * 0.3989, 1e-6);
  EXPECT_NEAR(expected_loss(fast, slow, 0.01), 0.01 * 0.0085, 1e-6);
  EXPECT_EQ(expected_loss(slow, slow, 0), 0);
}

TEST(MayBeToldApart, NotWhereNothingElseComesOutOrOnlyLessThanOnePercent) {
  Contender fast{.speeds = {1.015, 1.015}};
  Contender slow{.speeds = {1, 1}};

  EXPECT_TRUE(may_be_told_apart(fast, slow, {0.01, 2}, 0.0125, 2));
  EXPECT_FALSE(may_be_told_apart(fast, slow, {0.1, 2}, 0.0125, 2)) << "too noisy";
  EXPECT_FALSE(may_be_told_apart(slow, slow, {0.001, 2}, 0.0125, 2)) << "within 1 %";
}

}  // namespace
}  // namespace dstune::contenders_test
