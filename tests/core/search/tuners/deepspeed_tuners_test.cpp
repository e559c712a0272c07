// DeepSpeed's three tuners over a pool.
#include "core/search/tuners/deepspeed_tuners.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/pool_search.hpp"

namespace dstune::deepspeed_tuners_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::make_pool;
using testing_support::Row;
using testing_support::search;
using testing_support::TableForecaster;

/// `count` candidates, the first the fastest unless the predictions are looked at: these fall.
std::vector<Row> make_rows(int count) {
  std::vector<Row> rows;
  for (int i = 0; i < count; ++i) {
    rows.push_back({"c" + std::to_string(i), 1, 1.0 + i, 100, {100.0 - i, 0.1}});
  }
  return rows;
}

class PoolTunersTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.autotuning.tuner_num_trials = 1000;
    config_.autotuning.tuner_early_stopping = 1000;
  }
  GridTuner grid() { return {config_, 1, make_pool(rows_)}; }
  RandomTuner random() { return {config_, 1, make_pool(rows_)}; }
  ModelBasedTuner model_based() {
    return {config_, 1, make_pool(rows_), std::make_unique<TableForecaster>(rows_)};
  }

  TuningConfig config_;
  std::vector<Row> rows_ = make_rows(20);
};

TEST_F(PoolTunersTest, GridTakesTheListInItsOrder) {
  rows_ = make_rows(4);
  auto tuner = grid();

  EXPECT_THAT(search(tuner, rows_).names(), ElementsAre("c0", "c1", "c2", "c3"));
  EXPECT_EQ(tuner.best()->experiment.name, "c0");
}

TEST_F(PoolTunersTest, ABatchIsAsManyAsThereAreFreeGroups) {
  rows_ = make_rows(5);
  auto tuner = grid();

  EXPECT_THAT(search(tuner, rows_, 2).batches,
              ElementsAre(ElementsAre("c0", "c1"), ElementsAre("c2", "c3"), ElementsAre("c4")));
}

TEST_F(PoolTunersTest, TrialsAreBoundedExactlyWhateverTheBatch) {
  config_.autotuning.tuner_num_trials = 5;
  auto tuner = grid();

  EXPECT_EQ(search(tuner, rows_, 3).names().size(), 5U);
  EXPECT_THAT(tuner.remarks(),
              ElementsAre("gridsearch tried 5 of 20 configurations: tuner_num_trials is 5"));
}

// docs/deepspeed-step.md, "DeepSpeed's autotuner: tuners": i >= best_iter + early_stopping, where
// best_iter is the best's own number.
TEST_F(PoolTunersTest, StopsEarlyWhenNothingBetterFollowsTheBest) {
  config_.autotuning.tuner_early_stopping = 3;
  rows_[1].step_time = 0.5;
  auto tuner = grid();

  EXPECT_THAT(search(tuner, rows_).names(), ElementsAre("c0", "c1", "c2", "c3"));
  EXPECT_THAT(tuner.remarks().front(), HasSubstr("none of the last 2 was better"));
}

TEST_F(PoolTunersTest, DoesNotStopEarlyBeforeAnythingRan) {
  config_.autotuning.tuner_early_stopping = 3;
  for (std::size_t i = 0; i < 10; ++i) rows_[i].step_time = 0;
  auto tuner = grid();

  EXPECT_THAT(search(tuner, rows_).names().back(), "c12");
}

TEST_F(PoolTunersTest, RandomTakesEachOnceInAnOrderOfTheSeed) {
  auto tuner = random();
  auto again = random();
  config_.settings.seed = 2;
  auto other = random();

  const auto names = search(tuner, rows_).names();

  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 20U);
  EXPECT_FALSE(std::ranges::is_sorted(names));
  EXPECT_EQ(search(other, rows_).names().size(), 20U);
  EXPECT_EQ(search(again, rows_).names().size(), 20U);
}

TEST_F(PoolTunersTest, RandomIsTheSameForASeedAndAnotherForAnother) {
  auto tuner = random();
  const auto names = search(tuner, rows_).names();
  auto again = random();
  const auto same = search(again, rows_).names();
  config_.settings.seed = 2;
  auto other = random();

  EXPECT_EQ(same, names);
  EXPECT_NE(search(other, rows_).names(), names);
}

// A shuffle that favours some places would find the best there sooner: mean of 10 of 20 is 9.5.
TEST_F(PoolTunersTest, RandomIsFair) {
  double sum = 0;
  constexpr int kSeeds = 400;
  for (int seed = 0; seed < kSeeds; ++seed) {
    config_.settings.seed = static_cast<std::uint64_t>(seed);
    auto tuner = random();
    const auto names = search(tuner, rows_).names();
    sum += static_cast<double>(std::ranges::find(names, "c7") - names.begin());
  }

  EXPECT_NEAR(sum / kSeeds, 9.5, 1) << "standard error 0.29";
}

TEST_F(PoolTunersTest, ModelBasedBeginsWithTheFirstAndARandomOneThenFollowsThePredictor) {
  auto tuner = model_based();

  const auto names = search(tuner, rows_).names();

  EXPECT_EQ(names.front(), "c0");
  int in_order = 0;  // c19 is predicted to be the fastest
  std::set<std::string> left;
  for (const Row& row : rows_) left.insert(row.name);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto fastest = std::ranges::max_element(
        left, {}, [](const std::string& name) { return std::stoi(name.substr(1)); });
    if (i >= 2 && names[i] == *fastest) ++in_order;
    left.erase(names[i]);
  }
  EXPECT_GE(in_order, 12) << "four of five of 18";
  EXPECT_LT(in_order, 18) << "one of five is random";
}

TEST_F(PoolTunersTest, ModelBasedMinimisesLatency) {
  config_.autotuning.metric = Metric::latency;
  rows_ = make_rows(3);
  auto tuner = model_based();

  search(tuner, rows_);

  EXPECT_EQ(tuner.best()->experiment.name, "c0");
}

TEST_F(PoolTunersTest, AnEmptyPoolIsFinished) {
  rows_.clear();
  auto tuner = random();

  EXPECT_THAT(tuner.next(1), IsEmpty());
  EXPECT_FALSE(tuner.best());
}

}  // namespace
}  // namespace dstune::deepspeed_tuners_test
