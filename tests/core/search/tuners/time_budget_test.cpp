#include "core/search/tuners/time_budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/tuners/deepspeed_tuners.hpp"
#include "tests/support/pool_search.hpp"

namespace dstune::time_budget_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::make_pool;
using testing_support::make_record;
using testing_support::Row;
using testing_support::search;

// Every experiment takes a second.
class TimeBudgetTest : public testing::Test {
 protected:
  void SetUp() override { config_.autotuning.tuner_early_stopping = 100; }
  TimeBudget tuner(Seconds budget, double share = 1) {
    return {std::make_unique<GridTuner>(config_, 1, make_pool(rows_)), budget, share};
  }

  TuningConfig config_;
  std::vector<Row> rows_ = std::vector<Row>(
      {{"a", 1, 3}, {"b", 1, 2}, {"c", 1, 1}, {"d", 1, 4}, {"e", 1, 5}, {"f", 1, 6}});
};

TEST_F(TimeBudgetTest, EndsWhenAnotherExperimentWouldExceedIt) {
  auto bounded = tuner(3.5);

  EXPECT_THAT(search(bounded, rows_).names(), SizeIs(3));
  EXPECT_EQ(bounded.best()->experiment.name, "c") << "the best so far";
  EXPECT_THAT(bounded.remarks().front(),
              HasSubstr("time_budget 3.50 s ended the run after 3.00 s"));
}

TEST_F(TimeBudgetTest, TheSearchMayHaveAShareOfIt) {
  auto bounded = tuner(4, 0.5);

  EXPECT_THAT(search(bounded, rows_).names(), SizeIs(2));
  EXPECT_THAT(bounded.remarks().front(), HasSubstr("ended the search"));
}

TEST_F(TimeBudgetTest, TheFirstExperimentIsAlwaysRun) {
  auto bounded = tuner(0.001);

  EXPECT_THAT(search(bounded, rows_).names(), SizeIs(1));
}

TEST_F(TimeBudgetTest, SaysNothingWhereTheSearchWasOverInTime) {
  auto bounded = tuner(100);

  EXPECT_THAT(search(bounded, rows_).names(), SizeIs(6));
  EXPECT_THAT(bounded.remarks(), SizeIs(1)) << "the tuner's own";
}

// A resumed run hears what the journal says: its clock goes on where it was.
TEST_F(TimeBudgetTest, ARunThatGoesOnHasUsedUpWhatTheJournalSays) {
  auto bounded = tuner(10);
  Record late = make_record(bounded.next(1).front(), 3, 9);
  late.finished = 9.5;

  bounded.learn(late);

  EXPECT_THAT(bounded.next(1), SizeIs(1)) << "one more takes half a second";
  late.finished = 9.9;
  bounded.learn(late);
  EXPECT_THAT(bounded.next(1), IsEmpty());
}

}  // namespace
}  // namespace dstune::time_budget_test
