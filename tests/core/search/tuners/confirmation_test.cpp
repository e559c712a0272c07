#include "core/search/tuners/confirmation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/search/tuners/deepspeed_tuners.hpp"
#include "tests/support/pool_search.hpp"
#include "tests/support/set_in.hpp"

namespace dstune::confirmation_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::make_pool;
using testing_support::PoolSearch;
using testing_support::Row;
using testing_support::search;

class ConfirmationTest : public testing::Test {
 protected:
  void SetUp() override { config_.autotuning.tuner_early_stopping = 100; }

  Confirmation tuner() {
    return {std::make_unique<GridTuner>(config_, 1, make_pool(rows_)), Metric::throughput};
  }
  /// What a run of the candidate takes in turn; the first is of the search.
  Seconds time_of(const Candidate& candidate) {
    const auto name = candidate.name.substr(0, candidate.name.find("_again"));
    return times_.at(name).at(static_cast<std::size_t>(candidate.repetition));
  }
  PoolSearch run(Confirmation& tuner, int groups = 1) {
    return search(
        tuner, [&](const Candidate& candidate) { return time_of(candidate); }, groups);
  }

  TuningConfig config_;
  std::vector<Row> rows_;
  std::map<std::string, std::vector<Seconds>> times_;
};

TEST_F(ConfirmationTest, TwoRepetitionsOfEachAreEnoughWhereTheOrderIsBeyondNoise) {
  rows_ = {{"slow"}, {"fast"}, {"slowest"}};
  times_ = {{"slow", {1.3, 1.3, 1.3}}, {"fast", {1, 1, 1}}, {"slowest", {2}}};
  auto confirmed = tuner();

  EXPECT_THAT(run(confirmed, 2).batches,
              ElementsAre(ElementsAre("slow", "fast"), ElementsAre("slowest"),
                          ElementsAre("fast_again1"), ElementsAre("slow_again1"),
                          ElementsAre("slow_again2"), ElementsAre("fast_again2")))
      << "repetitions run alone";
  EXPECT_EQ(confirmed.best()->experiment.name, "fast");
  EXPECT_THAT(confirmed.remarks().back(), HasSubstr("fast was confirmed by 2 repetitions against "
                                                    "1 other"));
  EXPECT_THAT(confirmed.remarks().back(), Not(HasSubstr("not distinguishable")));
}

TEST_F(ConfirmationTest, CountsTheRepetitionsUpToTheNextLookAmongWhatIsToCome) {
  rows_ = {{"slow"}, {"fast"}, {"slowest"}};
  times_ = {{"slow", {1.3, 1.3, 1.3}}, {"fast", {1, 1, 1}}, {"slowest", {2}}};
  auto confirmed = tuner();
  std::vector<int> still_to_come;

  for (int trial = 0;; ++trial) {
    const auto asked = confirmed.next(1);
    if (asked.empty()) break;
    still_to_come.push_back(confirmed.still_to_come().value());
    confirmed.learn(testing_support::make_record(asked.front(), time_of(asked.front()), trial));
  }

  EXPECT_THAT(still_to_come, ElementsAre(7, 6, 5, 4, 3, 2, 1));
  EXPECT_EQ(confirmed.foretold("fast_again1"), 1) << "as it was measured";
}

TEST_F(ConfirmationTest, RepetitionsDecideNotTheFirstNumber) {
  rows_ = {{"lucky"}, {"good"}};
  times_ = {{"lucky", {1, 1.3, 1.3}}, {"good", {1.1, 1.1, 1.1}}};
  auto confirmed = tuner();

  run(confirmed);

  EXPECT_EQ(confirmed.best()->experiment.name, "good");
}

// 0.1 % apart, and the steps say that nothing will show 1 %.
TEST_F(ConfirmationTest, WhatIsWithinOnePercentForSureIsNotToldApart) {
  rows_ = {{"a"}, {"b"}};
  times_ = {{"a", std::vector<Seconds>(3, 1.0)}, {"b", std::vector<Seconds>(3, 1.001)}};
  auto confirmed = tuner();

  const auto names = run(confirmed).names();

  EXPECT_THAT(names, ElementsAre("a", "b", "a_again1", "b_again1", "b_again2", "a_again2"));
  EXPECT_THAT(confirmed.remarks().back(), HasSubstr("not distinguishable from it: b"));
}

/// Times that vary by `noise`, `factor` times as long.
std::vector<Seconds> varying_times(double factor, double noise = 0.01) {
  std::vector<Seconds> times = {factor};
  for (int i = 0; i < 6; ++i) times.push_back(factor * (1 + (i % 2 == 0 ? noise : -noise)));
  return times;
}

TEST_F(ConfirmationTest, CloseOnesAlternateThereAndBackAndAreBounded) {
  rows_ = {{"a"}, {"b"}};
  times_ = {{"a", varying_times(1)}, {"b", varying_times(1.014)}};
  auto confirmed = tuner();

  const auto names = run(confirmed).names();

  EXPECT_THAT(names, ElementsAre("a", "b", "a_again1", "b_again1", "b_again2", "a_again2",
                                 "a_again3", "b_again3", "b_again4", "a_again4", "a_again5",
                                 "b_again5", "b_again6", "a_again6"));
  EXPECT_THAT(confirmed.remarks().back(), HasSubstr("not distinguishable from it: b"));
}

TEST_F(ConfirmationTest, WhoIsToldApartIsNotRepeatedAnyMore) {
  rows_ = {{"a"}, {"b"}, {"c"}};
  times_ = {{"a", varying_times(1, 0.003)},
            {"b", varying_times(1.005, 0.003)},
            {"c", varying_times(1.045, 0.003)}};
  auto confirmed = tuner();

  const auto names = run(confirmed).names();

  EXPECT_THAT(names, testing::Contains("c_again2"));
  EXPECT_THAT(names, testing::Contains("b_again3"));
  EXPECT_THAT(names, Not(testing::Contains("c_again3")));
  EXPECT_THAT(confirmed.remarks().back(), HasSubstr("not distinguishable from it: b"));
}

// Five are 2 % behind with 1 % of noise; three of them are no contenders.
TEST_F(ConfirmationTest, WhatWasMeasuredOnceIsATieUnlessItIsSlowerBeyondNoise) {
  rows_ = {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"slow"}};
  for (const char* name : {"a", "b", "c", "d", "e"}) times_[name] = varying_times(1.02);
  times_["a"] = varying_times(1);
  times_["slow"] = {1.4};
  auto confirmed = tuner();

  run(confirmed);

  EXPECT_THAT(confirmed.remarks().back(), HasSubstr(", e"));
  EXPECT_THAT(confirmed.remarks().back(), Not(HasSubstr("slow")));
}

/// How many of `seeds` tunings of configurations with these true times name all others as ties of
/// the optimum, and how many announce the slowest as the only one; a run varies by `noise`.
struct Verdicts {
  int ties = 0;
  int slowest_alone = 0;
};

Verdicts verdicts_of(const std::vector<Seconds>& truths, double noise, std::uint64_t seeds) {
  TuningConfig config;
  config.autotuning.tuner_early_stopping = 100;
  std::vector<Row> rows;
  for (std::size_t i = 0; i < truths.size(); ++i) rows.push_back({concat("c", i)});
  Verdicts verdicts;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 generator(seed);
    std::normal_distribution<double> normal;
    Confirmation confirmed(std::make_unique<GridTuner>(config, 1, make_pool(rows)),
                           Metric::throughput);
    search(confirmed, [&](const Candidate& candidate) {
      return truths.at(static_cast<std::size_t>(candidate.name[1] - '0')) *
             std::exp(noise * normal(generator));
    });
    const bool is_slowest = confirmed.best()->experiment.name == rows.back().name;
    verdicts.ties += confirmed.ties().size() + 1 == truths.size() ? 1 : 0;
    verdicts.slowest_alone += is_slowest && confirmed.ties().empty() ? 1 : 0;
  }
  return verdicts;
}

TEST(ConfirmationErrors, IdenticalConfigurationsAreTiesWhateverTheNoise) {
  for (const double noise : {0.01, 0.03, 0.1}) {
    EXPECT_GE(verdicts_of({1, 1}, noise, 60).ties, 54) << noise;
    EXPECT_GE(verdicts_of({1, 1, 1, 1, 1, 1}, noise, 60).ties, 54) << noise;
  }
}

TEST(ConfirmationErrors, ASlowerOneIsRarelyTheOnlyOptimum) {
  for (const double noise : {0.01, 0.03, 0.1}) {
    EXPECT_LE(verdicts_of({1, 1.03}, noise, 60).slowest_alone, 3) << noise;
  }
}

TEST(ConfirmationErrors, AFasterOneIsToldApartWhereNoiseAllows) {
  EXPECT_LE(verdicts_of({1, 1.05}, 0.01, 60).ties, 3);
}

/// Names in the order they were run, with the preset's host overhead in the steps of "b".
std::vector<std::string> run_with_host_overhead(Confirmation& tuner, int hooks_of_b) {
  std::vector<std::string> names;
  for (auto batch = tuner.next(1); !batch.empty(); batch = tuner.next(1)) {
    const Candidate& candidate = batch.front();
    names.push_back(candidate.name);
    const double factor = candidate.name.starts_with("b") ? 1.014 : 1;
    const Seconds time = varying_times(factor).at(static_cast<std::size_t>(candidate.repetition));
    Record record = testing_support::make_record(candidate, time, static_cast<int>(names.size()));
    record.experiment.settings.host_overhead = host_overhead_preset(kGlooOverhead).value();
    for (int i = 0; i < hooks_of_b && candidate.name.starts_with("b"); ++i) {
      std::get<Measured>(record.outcome).ledger.add_host(HostEvent::gradient_hook, 160e-6);
    }
    tuner.learn(record);
  }
  return names;
}

// 1 % of noise after two repetitions of each, and 0.16 s of host time that b alone has.
TEST_F(ConfirmationTest, WhatHangsOnTheProfileIsNotRepeatedForIt) {
  rows_ = {{"a"}, {"b"}};
  auto confirmed = tuner();

  EXPECT_THAT(run_with_host_overhead(confirmed, 1000),
              ElementsAre("a", "b", "a_again1", "b_again1", "b_again2", "a_again2"));
  EXPECT_THAT(confirmed.remarks().back(), HasSubstr("not distinguishable from it: b"));
}

TEST_F(ConfirmationTest, WhatHangsOnTheProfileLessThanOnNoiseIsRepeated) {
  rows_ = {{"a"}, {"b"}};
  auto confirmed = tuner();

  EXPECT_THAT(run_with_host_overhead(confirmed, 10), testing::SizeIs(14));
}

TEST_F(ConfirmationTest, OfTiesTheSmallerStageIsTheOptimum) {
  rows_ = {{"z3", 3}, {"z1", 1}};
  times_ = {{"z3", std::vector<Seconds>(7, 1.0)}, {"z1", std::vector<Seconds>(7, 1.001)}};
  auto confirmed = tuner();

  run(confirmed);

  EXPECT_EQ(confirmed.best()->experiment.name, "z1");
  EXPECT_THAT(confirmed.remarks().back(), HasSubstr("not distinguishable from it: z3"));
}

// Equal but for one setting, whose other value is slower by what no noise hides; DeepSpeed has
// true.
TEST_F(ConfirmationTest, OfTiesDeepSpeedsDefaultsAreTheOptimumWhateverTheNames) {
  rows_ = {{"z1_cgF", 1}, {"z1_cgT", 1}};
  times_ = {{"z1_cgF", std::vector<Seconds>(7, 1.001)}, {"z1_cgT", std::vector<Seconds>(7, 1.0)}};
  auto pool = make_pool(rows_);
  testing_support::set_in(pool.candidates[0].candidate.ds_config, "zero_optimization",
                          "contiguous_gradients", false);
  Confirmation confirmed(std::make_unique<GridTuner>(config_, 1, std::move(pool)),
                         Metric::throughput);

  run(confirmed);

  EXPECT_EQ(confirmed.best()->experiment.name, "z1_cgT");
}

TEST_F(ConfirmationTest, OfEquallySimpleTiesTheFasterIsTheOptimumWhateverTheNames) {
  rows_ = {{"a", 1}, {"b", 1}};
  times_ = {{"a", std::vector<Seconds>(7, 1.001)}, {"b", std::vector<Seconds>(7, 1.0)}};
  auto confirmed = tuner();

  run(confirmed);

  EXPECT_EQ(confirmed.best()->experiment.name, "b");
}

// Six of which four are repeated, as on simulated hardware, where equal work takes the same time.
TEST_F(ConfirmationTest, OfExactTiesTheSmallestStageIsTheOptimumInEveryOrder) {
  rows_ = {{"a", 3}, {"b", 2}, {"c", 3}, {"d", 2}, {"e", 3}, {"z", 1}};
  for (const Row& row : rows_) times_[row.name] = std::vector<Seconds>(7, 0.1);
  for (int turn = 0; turn < 6; ++turn) {
    std::rotate(rows_.begin(), rows_.begin() + 1, rows_.end());
    auto confirmed = tuner();

    run(confirmed);

    EXPECT_EQ(confirmed.best()->experiment.name, "z") << "with " << rows_.front().name << " first";
  }
}

TEST_F(ConfirmationTest, ASpreadIsSaidOnlyWhereRepetitionsShowOne) {
  rows_ = {{"a"}, {"b"}};
  times_ = {{"a", {1, 1, 1.02}}, {"b", {1.1, 1.1, 1.122}}};
  auto cut = tuner();
  search(
      cut, [&](const Candidate& candidate) { return time_of(candidate); }, 1, 4);
  auto whole = tuner();
  run(whole);

  EXPECT_THAT(cut.remarks().back(), Not(HasSubstr("vary")));
  EXPECT_THAT(whole.remarks().back(),
              HasSubstr("repetitions of one configuration vary by 1.4 % (standard deviation)"));
}

TEST_F(ConfirmationTest, ARepetitionFarFromTheFirstIsSaid) {
  rows_ = {{"disturbed"}, {"quiet"}};
  times_ = {{"disturbed", {1, 1.31, 1.31}}, {"quiet", {1.01, 1.04, 1.04}}};
  auto confirmed = tuner();

  run(confirmed);

  EXPECT_THAT(confirmed.remarks().back(),
              AllOf(HasSubstr("disturbed_again1 took 31 % longer, disturbed_again2 took 31 % "
                              "longer than at first"),
                    Not(HasSubstr("quiet_again1"))));
}

TEST_F(ConfirmationTest, WhatIsMeasurablySlowerIsNoTieWhateverItsStage) {
  rows_ = {{"z3", 3}, {"z1", 1}};
  times_ = {{"z3", std::vector<Seconds>(7, 1.0)}, {"z1", std::vector<Seconds>(7, 1.04)}};
  auto confirmed = tuner();

  run(confirmed);

  EXPECT_EQ(confirmed.best()->experiment.name, "z3");
}

TEST_F(ConfirmationTest, ARepetitionThatFailsCountsAndDoesNotDecide) {
  rows_ = {{"fragile"}, {"solid"}};
  times_ = {{"fragile", {1, 0}}, {"solid", {1.02, 1.02}}};
  auto confirmed = tuner();

  EXPECT_THAT(run(confirmed).names(),
              ElementsAre("fragile", "solid", "fragile_again1", "solid_again1"));
  EXPECT_EQ(confirmed.best()->experiment.name, "solid");
}

TEST_F(ConfirmationTest, ASingleMeasurementIsNotRepeated) {
  rows_ = {{"only"}, {"too large"}};
  times_ = {{"only", {1}}, {"too large", {0}}};
  auto confirmed = tuner();

  EXPECT_THAT(run(confirmed).names(), ElementsAre("only", "too large"));
  EXPECT_EQ(confirmed.best()->experiment.name, "only");
}

TEST_F(ConfirmationTest, KnowsTheBestBeforeAndDuringTheConfirmation) {
  rows_ = {{"a"}, {"b"}};
  auto confirmed = tuner();
  EXPECT_FALSE(confirmed.best());
  times_ = {{"a", {1, 1, 1}}, {"b", {2, 2, 2}}};

  search(
      confirmed, [&](const Candidate& candidate) { return time_of(candidate); }, 1, 3);

  EXPECT_EQ(confirmed.best()->experiment.name, "a");
}

TEST_F(ConfirmationTest, ARepetitionIsAnExperimentOfItsOwn) {
  rows_ = {{"a"}, {"b"}};
  times_ = {{"a", {1, 1, 1}}, {"b", {2, 2, 2}}};
  auto confirmed = tuner();

  const auto records = run(confirmed).records;

  EXPECT_NE(records[2].experiment.key(), records[0].experiment.key());
}

}  // namespace
}  // namespace dstune::confirmation_test
