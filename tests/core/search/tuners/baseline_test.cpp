#include "core/search/tuners/baseline.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/tuners/deepspeed_tuners.hpp"
#include "tests/support/pool_search.hpp"

namespace dstune::baseline_test {
namespace {

using testing::ElementsAre;
using testing_support::make_pool;
using testing_support::Row;
using testing_support::search;

TuningConfig with_point(GivenPoint point) {
  TuningConfig config;
  config.given_point = point;
  return config;
}

std::string name_of_baseline(const TuningConfig& config, int ranks) {
  const auto baseline = baseline_of(config, ranks);
  return baseline ? baseline->name : "none";
}

TEST(BaselineOf, IsThePointOfTheFile) {
  EXPECT_EQ(name_of_baseline(TuningConfig{}, 2), "none");
  EXPECT_EQ(name_of_baseline(with_point({2, 4, 3}), 2), "z2_gas3_tmbspg4");
  EXPECT_EQ(name_of_baseline(with_point({2, 4, std::nullopt}), 2), "z2_gas1_tmbspg4");
}

TEST(BaselineOf, TakesFromTheFixedBatchWhatTheFileLeavesOpen) {
  auto config = with_point({1, 4, std::nullopt});
  config.objective.train_batch_size = 24;
  EXPECT_EQ(name_of_baseline(config, 2), "z1_gas3_tmbspg4");
  EXPECT_EQ(name_of_baseline(config, 5), "none") << "there 24 cannot be";

  config.given_point = {1, std::nullopt, 3};
  EXPECT_EQ(name_of_baseline(config, 2), "z1_gas3_tmbspg4");
  EXPECT_EQ(baseline_of(config, 2)->ds_config.json().at("train_batch_size").to_number<int>(), 24);
}

class BaselineTest : public testing::Test {
 protected:
  void SetUp() override { config_.autotuning.tuner_early_stopping = 100; }

  BaselineTuner tuner() {
    Candidate own = baseline_;
    return {std::make_unique<GridTuner>(config_, 1, make_pool(rows_)), std::move(own),
            Metric::throughput};
  }
  testing_support::PoolSearch run(BaselineTuner& tuner, int groups = 1) {
    return search(
        tuner,
        [&](const Candidate& candidate) {
          return times_.at(candidate.name.substr(0, candidate.name.find("_again")));
        },
        groups);
  }

  TuningConfig config_;
  std::vector<Row> rows_ = {{"a"}, {"b", 1}};
  std::map<std::string, Seconds> times_ = {{"a", 1.5}, {"b", 1}, {"own", 2}};
  Candidate baseline_ = {"own",
                         {{"train_batch_size", 1},
                          {"train_micro_batch_size_per_gpu", 1},
                          {"gradient_accumulation_steps", 1},
                          {"zero_optimization", {{"stage", 3}}}}};
};

TEST_F(BaselineTest, IsMeasuredFirstAndComparedAtTheEnd) {
  auto compared = tuner();

  EXPECT_THAT(
      run(compared, 2).batches,
      ElementsAre(ElementsAre("own"), ElementsAre("a", "b"), ElementsAre("own_again1"),
                  ElementsAre("b_again1"), ElementsAre("b_again2"), ElementsAre("own_again2")));
  EXPECT_EQ(compared.best()->experiment.name, "b");
}

TEST_F(BaselineTest, WinsWhereTheSearchFoundNothingFaster) {
  times_["own"] = 0.9;
  auto compared = tuner();

  run(compared);

  EXPECT_EQ(compared.best()->experiment.name, "own");
}

TEST_F(BaselineTest, IsNotRepeatedWhereItDoesNotFit) {
  times_["own"] = 0;
  auto compared = tuner();

  EXPECT_THAT(run(compared).names(), ElementsAre("own", "a", "b"));
  EXPECT_EQ(compared.best()->experiment.name, "b");
}

TEST_F(BaselineTest, IsAllThereIsWhereTheSearchFoundNothing) {
  times_["a"] = 0;
  times_["b"] = 0;
  auto compared = tuner();

  EXPECT_THAT(run(compared).names(), ElementsAre("own", "a", "b"));
  EXPECT_EQ(compared.best()->experiment.name, "own");
}

TEST_F(BaselineTest, IsNotRepeatedWhereItIsTheBest) {
  baseline_ = make_pool(rows_).candidates[1].candidate;
  auto compared = tuner();

  EXPECT_THAT(run(compared).names(), ElementsAre("b", "a"));
  EXPECT_EQ(compared.best()->experiment.name, "b");
}

TEST_F(BaselineTest, IsMeasuredOnceWhereTheSearchHasItUnderAnotherName) {
  baseline_ = make_pool(rows_).candidates[1].candidate;
  baseline_.name = "own";
  times_["own"] = 1;
  auto compared = tuner();

  EXPECT_THAT(run(compared).names(), ElementsAre("own", "a"));
  EXPECT_EQ(compared.best()->experiment.name, "own");
}

TEST_F(BaselineTest, IsTheOptimumWhereTheRunEndsBeforeAnythingFasterWasFound) {
  times_ = {{"a", 9}, {"b", 9}, {"own", 1}};
  auto cut = tuner();

  search(
      cut, [&](const Candidate& candidate) { return times_.at(candidate.name); }, 1, 2);

  EXPECT_EQ(cut.best()->experiment.name, "own");
}

/// Asks for what a test says, and says what a test says.
class Scripted final : public Tuner {
 public:
  std::vector<std::vector<Candidate>> asks;
  std::vector<std::string> learnt;
  std::vector<std::string> says;

  std::vector<Candidate> next(int /*free_groups*/) override {
    if (asks.empty()) return {};
    auto candidates = asks.front();
    asks.erase(asks.begin());
    return candidates;
  }
  void learn(const Record& record) override {
    learnt.push_back(record.experiment.name);
    if (!best_) best_ = record;
  }
  std::optional<Record> best() override { return best_; }
  std::optional<int> still_to_come() override { return 7; }
  std::optional<Seconds> foretold(const std::string& name) override {
    return static_cast<Seconds>(name.size());
  }
  std::vector<std::string> remarks() override { return says; }

 private:
  std::optional<Record> best_;
};

TEST_F(BaselineTest, IsCalledByOneName) {
  Candidate twin = baseline_;
  twin.name = "twin";
  Candidate again = twin;
  again.name = "twin_again1";
  again.repetition = 1;
  auto scripted = std::make_unique<Scripted>();
  Scripted* const inside = scripted.get();
  inside->asks = {{twin}, {again}};
  inside->says = {"twin was confirmed by twin_again1, twin2 and twin_ocT were not"};
  BaselineTuner tuner(std::move(scripted), baseline_, Metric::throughput);

  const auto names = run(tuner).names();

  EXPECT_THAT(names, ElementsAre("own", "own_again1"));
  EXPECT_THAT(inside->learnt, ElementsAre("twin", "twin_again1"));
  EXPECT_THAT(tuner.remarks(),
              ElementsAre("own was confirmed by own_again1, twin2 and twin_ocT were not"));
  EXPECT_EQ(tuner.best()->experiment.name, "own");
}

TEST_F(BaselineTest, TellsWhatIsToComeOfItsOwnToo) {
  auto scripted = std::make_unique<Scripted>();
  scripted->asks = {{make_pool(rows_).candidates[0].candidate}};
  BaselineTuner tuner(std::move(scripted), baseline_, Metric::throughput);

  tuner.next(1);

  EXPECT_EQ(tuner.still_to_come(), 7 + 1 + 4);
  EXPECT_EQ(tuner.foretold("own"), std::nullopt) << "the search does not know it";
  EXPECT_EQ(tuner.foretold("a"), 1);
  tuner.learn(testing_support::make_record(baseline_, 1, 0));
  EXPECT_EQ(tuner.still_to_come(), 7 + 4);
}

TEST_F(BaselineTest, IsNamedWhereItBeatsWhatTheSearchFound) {
  times_["own"] = 0.9;
  auto compared = tuner();
  run(compared);

  EXPECT_EQ(compared.remarks().front(),
            "your own configuration, own, is faster than what the search found, b");
}

}  // namespace
}  // namespace dstune::baseline_test
