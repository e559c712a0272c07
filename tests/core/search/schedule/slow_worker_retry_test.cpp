// Scheduler with a worker that is slow: what it measured is measured again elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/search/schedule/sick_worker.hpp"

namespace dstune::slow_worker_retry_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing_support::count_starts;
using testing_support::make_batch;
using testing_support::make_named;
using testing_support::ScriptedPool;
using testing_support::workers_on;

class SlowWorkerRetry : public testing_support::SickWorkerTest {
 protected:
  /// What the workers that the last start gave it need for a step, of which those of `slow` have a
  /// quarter of a core.
  Outcome measured_by(const std::vector<int>& ranks) {
    Measured measured;
    bool is_slow = false;
    for (const int rank : ranks) {
      is_slow = is_slow || rank == slow_;
      measured.core_use.push_back(rank == slow_ ? CoreUse{4, 1, 0} : CoreUse{1, 1, 0});
    }
    const Seconds time = is_slow && takes_longer_ ? 0.4 : 0.1;
    measured.step_time = {time, time, time, 0};
    if (is_slow && stops_in_few_steps_) {
      measured.step_time.median = 0.1;
      measured.steps = 10;
      measured.measure_time = 4;
    }
    return measured;
  }

  /// The pool ends what was started first.
  ScriptedPool make_pool(int workers) {
    return {workers_on("a", 1, workers),
            [this](const Experiment&) { return measured_by(pool_->starts().at(ended_++).ranks); }};
  }

  std::vector<Record> run_all(int workers, const std::vector<Experiment>& batch) {
    ScriptedPool pool = make_pool(workers);
    pool_ = &pool;
    Scheduler scheduler(pool, *journal_, {}, stop_);
    auto records = scheduler.run(batch);
    lines_ = scheduler.slow_workers();
    starts_of_slow_ = count_starts(pool, slow_);
    return records;
  }

  int slow_ = 3;
  bool takes_longer_ = true;
  bool stops_in_few_steps_ = false;
  Scheduler::StopRequest stop_ = {};
  ScriptedPool* pool_ = nullptr;
  std::size_t ended_ = 0;
  std::vector<std::string> lines_;
  int starts_of_slow_ = 0;
};

double step_time(const Record& record) {
  return std::get<Measured>(record.outcome).step_time.median;
}

TEST_F(SlowWorkerRetry, WhatItMeasuredIsMeasuredElsewhereAndItGetsNothingMore) {
  const auto records = run_all(3, make_batch(9, 1));

  ASSERT_THAT(records, SizeIs(9));
  for (const Record& record : records) EXPECT_EQ(step_time(record), 0.1);
  EXPECT_EQ(starts_of_slow_, 1);
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], HasSubstr("rank 3 on a had 25 % of a core where the others had 100 %, and "
                                   "x2 took 4.0 times as long with it"));
}

TEST_F(SlowWorkerRetry, TheFirstTryIsInTheRecord) {
  run_all(3, make_batch(3, 1));
  reopen();

  const auto& records = journal_->records();
  ASSERT_THAT(records, SizeIs(3));
  const auto& tries = records.back().failed_tries;
  ASSERT_THAT(tries, SizeIs(1));
  EXPECT_THAT(tries[0].ranks, ElementsAre(3));
  EXPECT_THAT(tries[0].reason, HasSubstr("rank 3 on a had 25 % of a core"));
  EXPECT_FALSE(tries[0].answered) << "it is not retired in the resumed run";
}

TEST_F(SlowWorkerRetry, WhatWasDoubtedIsKeptWhenTheRunIsStopped) {
  int asked = 0;
  stop_ = [&] { return ended_ == 3 && asked++ > 0; };  // after the doubt, before the second try

  const auto records = run_all(3, make_batch(3, 1));

  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(step_time(records.back()), 0.4);
  reopen();
  EXPECT_THAT(journal_->records(), SizeIs(3));
}

TEST_F(SlowWorkerRetry, OfAGroupIsReplacedByASpare) {
  slow_ = 2;

  const auto records = run_all(3, make_batch(3, 2));

  ASSERT_THAT(records, SizeIs(3));
  EXPECT_THAT(records[0].ranks, ElementsAre(1, 3));
  EXPECT_THAT(lines_, SizeIs(1));
}

TEST_F(SlowWorkerRetry, IsOnlyNamedWhereTheOthersAreTooFew) {
  slow_ = 2;

  const auto records = run_all(2, make_batch(4, 2));

  ASSERT_THAT(records, SizeIs(4));
  EXPECT_EQ(starts_of_slow_, 4);
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], HasSubstr("third experiment in a row"));
}

TEST_F(SlowWorkerRetry, WhoIsStoppedInFewStepsIsNamedByTheirMean) {
  stops_in_few_steps_ = true;

  run_all(3, make_batch(3, 1));

  EXPECT_THAT(lines_, SizeIs(1));
}

TEST_F(SlowWorkerRetry, WhoWasNotSlowerThanOthersIsNotNamed) {
  takes_longer_ = false;

  run_all(3, make_batch(3, 1));

  EXPECT_THAT(lines_, SizeIs(0));
}

TEST_F(SlowWorkerRetry, WhoWasOftenNotSlowerIsSuspectedNoMore) {
  takes_longer_ = false;

  const auto records = run_all(3, make_batch(30, 1));

  std::size_t twice = 0;
  for (const Record& record : records) twice += record.failed_tries.size();
  EXPECT_EQ(twice, 3U);
}

}  // namespace
}  // namespace dstune::slow_worker_retry_test
