// A tuner's next step depends on what it has learnt alone, so that a killed run goes the same way.
#include <cmath>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/tuners/tuner_table.hpp"
#include "tests/support/pool_search.hpp"
#include "tests/support/simulated_machine.hpp"

namespace dstune::resumed_tuners_test {
namespace {

using testing_support::make_pool;
using testing_support::make_record;
using testing_support::make_tuning_config;
using testing_support::PoolSearch;
using testing_support::Row;
using testing_support::search;
using testing_support::SimulatedMachine;
using testing_support::TableForecaster;

/// 60 candidates whose times, predictions and memory are all over the place; some do not fit.
std::vector<Row> ragged_rows() {
  std::vector<Row> rows;
  for (int i = 0; i < 60; ++i) {
    const double time = 1 + 0.5 * std::sin(i * i);
    const bool fits = i % 7 != 3;
    rows.push_back({"c" + std::to_string(i),
                    i % 4,
                    fits ? time : 0,
                    static_cast<Bytes>(10 + i * 37 % 50),
                    {time * (1 + 0.3 * std::sin(3.0 * i)), 0.2}});
  }
  return rows;
}

struct Way {
  std::string tuner;
  bool fast = true;
  int groups = 1;
  std::optional<Seconds> budget = std::nullopt;
};

class ResumedTuners : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    config_.tuner = GetParam().tuner;
    config_.autotuning.fast = GetParam().fast;
    config_.autotuning.tuner_early_stopping = 12;
    config_.time_budget = GetParam().budget;
    stages_ = plan_stages(config_, 1, machine_.predictor());
  }

  std::unique_ptr<Tuner> make() {
    return make_tuner({config_, 1, stages_,
                       [&](const std::vector<StagePlan>&, const std::vector<std::int64_t>&) {
                         return make_pool(rows_);
                       },
                       [&] { return std::make_unique<TableForecaster>(rows_, true); }});
  }

  Seconds time_of(const Candidate& candidate) {
    const auto name = candidate.name.substr(0, candidate.name.find("_again"));
    for (const Row& row : rows_) {
      if (row.name == name) return row.step_time * (1 + 0.004 * candidate.repetition);
    }
    return 2 + 0.1 * std::sin(static_cast<double>(name.size()));
  }

  std::vector<Row> rows_ = ragged_rows();
  SimulatedMachine machine_;
  TuningConfig config_ = make_tuning_config(460);
  std::vector<StagePlan> stages_;
};

TEST_P(ResumedTuners, GoTheSameWayFromWhereverTheyWereKilled) {
  const auto time = [&](const Candidate& candidate) { return time_of(candidate); };
  const auto whole = make();
  const PoolSearch expected = search(*whole, time, GetParam().groups);
  ASSERT_GT(expected.batches.size(), 4U);

  for (std::size_t kill = 1; kill < expected.batches.size(); kill += 3) {
    const auto resumed = make();
    std::size_t known = 0;
    std::vector<std::vector<std::string>> batches;
    for (auto batch = resumed->next(GetParam().groups); !batch.empty();
         batch = resumed->next(GetParam().groups)) {
      resumed->best();  // who only looks goes no other way
      resumed->remarks();
      auto& names = batches.emplace_back();
      for (const Candidate& candidate : batch) {
        names.push_back(candidate.name);
        const auto trial = static_cast<int>(known);
        resumed->learn(batches.size() <= kill ? expected.records.at(known)
                                              : make_record(candidate, time_of(candidate), trial));
        ++known;
      }
    }
    EXPECT_EQ(batches, expected.batches) << "killed after batch " << kill;
    EXPECT_EQ(resumed->best()->experiment.name, whole->best()->experiment.name);
    EXPECT_EQ(resumed->remarks(), whole->remarks());
  }
}

INSTANTIATE_TEST_SUITE_P(Tuners, ResumedTuners,
                         testing::Values(Way{"gridsearch"}, Way{"random"}, Way{"model_based"},
                                         Way{"guided"}, Way{"guided", true, 3},
                                         Way{"model_based", true, 3}, Way{"fast"},
                                         Way{"gridsearch", false}, Way{"random", false, 2},
                                         Way{"model_based", false}, Way{"guided", false},
                                         Way{"guided", true, 1, 20.0}),
                         [](const auto& ways) {
                           const Way& way = ways.param;
                           return way.tuner + (way.fast ? "" : "Full") +
                                  std::to_string(way.groups) + (way.budget ? "Budget" : "");
                         });

}  // namespace
}  // namespace dstune::resumed_tuners_test
