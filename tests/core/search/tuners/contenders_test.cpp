#include "core/search/tuners/contenders.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// Squares: 2 * 0.01^2 and of -0.03, 0, 0.03 about their mean 0.0018, over 2 + 2 degrees.
TEST(RepetitionNoise, PoolsAllRepetitions) {
  Contender three;
  three.speeds = {0.97, 1, 1.03};
  Contender single;
  single.speeds = {7};

  EXPECT_NEAR(repetition_noise({three, single, {}}), std::sqrt((0.0002 + 0.0018) / 4), 1e-12);
  EXPECT_DOUBLE_EQ(repetition_noise({}), 0.01);
}

// 0.02 apart, sd 0.01 sqrt(1/2 + 1/2): two sigma.
TEST(ChanceOfBeingFaster, GrowsWithTheDistanceInStandardErrors) {
  Contender fast;
  fast.speeds = {1.02, 1.02};
  Contender slow;
  slow.speeds = {1, 1};

  EXPECT_NEAR(chance_of_being_faster(fast, slow, 0.01), 0.9772498680518208, 1e-9);
  EXPECT_NEAR(chance_of_being_faster(slow, fast, 0.01), 0.0227501319481792, 1e-9);
}

}  // namespace
}  // namespace dstune::contenders_test
