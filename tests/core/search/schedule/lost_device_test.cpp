// Scheduler with workers that lose their device, or whose collectives give wrong sums.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/search/schedule/sick_worker.hpp"

namespace dstune::lost_device_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::count_measured;
using testing_support::count_starts;
using testing_support::kind_of;
using testing_support::make_batch;
using testing_support::make_named;
using testing_support::measured;
using testing_support::ScriptedPool;
using testing_support::SickWorkerTest;
using testing_support::workers_on;

class LostDeviceTest : public SickWorkerTest {};

TEST_F(LostDeviceTest, ItsExperimentRunsElsewhere) {
  ScriptedPool pool(workers_on("a", 1, 3), measured);
  pool.lose_device_of(1);
  Scheduler scheduler(pool, *journal_, {}, {});

  const auto records = scheduler.run(make_batch(3, 1));

  EXPECT_EQ(count_measured(records), 3);
  EXPECT_EQ(count_starts(pool, 1), 1);
  EXPECT_EQ(pool.size(), 2);
  EXPECT_THAT(scheduler.lost_devices(), ElementsAre("rank 1 on a: no GPU"));
  ASSERT_EQ(journal_->records().size(), 3U);
  const auto tried = std::find_if(records.begin(), records.end(), [](const Record& record) {
    return !record.failed_tries.empty();
  });
  ASSERT_NE(tried, records.end());
  EXPECT_FALSE(tried->failed_tries.front().answered) << "a new process has a new device";
}

TEST_F(LostDeviceTest, IsBackInTheResumedRun) {
  ScriptedPool first(workers_on("a", 1, 3), measured);
  first.lose_device_of(1);
  run(first, make_batch(1, 1));
  reopen();
  ScriptedPool second(workers_on("a", 1, 3), measured);

  run(second, make_batch(4, 1));

  EXPECT_EQ(second.size(), 3);
}

TEST_F(LostDeviceTest, AnExperimentThatCostsTwoDevicesHasFailed) {
  ScriptedPool pool(workers_on("a", 1, 3), measured);
  pool.lose_device_of(1);
  pool.lose_device_of(2);

  const auto records = run(pool, make_batch(1, 1));

  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(kind_of(records[0]), FailureKind::device_lost);
  EXPECT_EQ(pool.size(), 1);
  EXPECT_TRUE(journal_->find(records[0].experiment)) << "not tried again";
}

TEST_F(LostDeviceTest, TooFewDevicesAreAShortage) {
  ScriptedPool pool(workers_on("a", 1, 2), measured);
  pool.lose_device_of(2);
  Scheduler scheduler(pool, *journal_, {}, {});

  EXPECT_THAT(scheduler.run(make_batch(2, 2)), IsEmpty());

  ASSERT_TRUE(scheduler.shortage());
  EXPECT_EQ(scheduler.shortage()->left, 1);
}

class WrongSumsTest : public SickWorkerTest {
 protected:
  /// One experiment after the other, of which "x1" has wrong sums.
  ScriptedPool pool_{workers_on("a", 1, 2), [](const Experiment& experiment) -> Outcome {
                       if (experiment.name != "x1") return Measured{};
                       return Failed{FailureKind::wrong_sums, "rank 1 on a: 3 is 4"};
                     }};
};

TEST_F(WrongSumsTest, EndTheRunOnceTheyAreInTheJournal) {
  Scheduler scheduler(pool_, *journal_, {}, {});

  const auto records = scheduler.run(make_batch(4, 2));

  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(kind_of(records[1]), FailureKind::wrong_sums);
  EXPECT_EQ(scheduler.wrong_sums(), "rank 1 on a: 3 is 4");
  EXPECT_EQ(journal_->records().size(), 2U);
  EXPECT_THAT(scheduler.run({make_named("later", 2)}), IsEmpty());
  EXPECT_THAT(pool_.names(), ElementsAre("x0", "x1")) << "tried once";
}

TEST_F(WrongSumsTest, AreTriedAgainInTheResumedRun) {
  run(pool_, make_batch(2, 2));
  reopen();
  ScriptedPool mended(workers_on("a", 1, 2), measured);

  EXPECT_EQ(count_measured(run(mended, make_batch(2, 2))), 2);

  EXPECT_THAT(mended.names(), ElementsAre("x1"));
}

}  // namespace
}  // namespace dstune::lost_device_test
