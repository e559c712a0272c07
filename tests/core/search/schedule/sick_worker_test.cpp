// Scheduler with workers that fail: the others do the work.
#include "tests/core/search/schedule/sick_worker.hpp"

#include <algorithm>
#include <memory>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/schedule/worker_faults.hpp"

namespace dstune::sick_worker_test {
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

TEST_F(SickWorkerTest, IsRetiredAfterOneExperimentThatRunsElsewhere) {
  ScriptedPool pool(workers_on("a", 1, 3), measured);
  pool.fail_on(1);

  const auto records = run(pool, make_batch(5, 1));

  EXPECT_EQ(count_measured(records), 5);
  EXPECT_EQ(count_starts(pool, 1), 1);
  EXPECT_EQ(pool.size(), 2);
}

TEST_F(SickWorkerTest, IsNotTriedAgainWhileOthersAreBusy) {
  ScriptedPool pool(workers_on("a", 1, 2), measured);
  pool.fail_on(1);

  run(pool, make_batch(2, 1));

  ASSERT_EQ(pool.starts().size(), 3U);
  EXPECT_EQ(pool.starts()[2].name, "x0");
  EXPECT_THAT(pool.starts()[2].ranks, ElementsAre(2)) << "though 1 was idle before";
}

TEST_F(SickWorkerTest, TwoAreRetiredWithoutBeingTriedForEachOther) {
  ScriptedPool pool(workers_on("a", 1, 4), measured);
  pool.fail_on(1);
  pool.fail_on(2);

  const auto records = run(pool, make_batch(6, 1));

  EXPECT_EQ(count_measured(records), 6);
  EXPECT_EQ(count_starts(pool, 1) + count_starts(pool, 2), 2);
  EXPECT_EQ(pool.size(), 2);
}

TEST_F(SickWorkerTest, OfALargerGroupIsReplacedByASpare) {
  ScriptedPool pool(workers_on("a", 1, 3), measured);
  pool.fail_on(2);

  const auto records = run(pool, make_batch(3, 2));

  EXPECT_EQ(count_measured(records), 3);
  EXPECT_EQ(count_starts(pool, 2), 1);
  EXPECT_THAT(records[0].ranks, ElementsAre(1, 3));
}

TEST_F(SickWorkerTest, IsRememberedInTheRecordOfWhatFailedOnIt) {
  ScriptedPool pool(workers_on("a", 1, 2), measured);
  pool.fail_on(1);
  run(pool, make_batch(1, 1));
  reopen();

  const auto& tries = journal_->records().at(0).failed_tries;

  ASSERT_EQ(tries.size(), 1U);
  EXPECT_THAT(tries[0].ranks, ElementsAre(1));
  EXPECT_THAT(tries[0].culprits, ElementsAre(FailedTry::Culprit{1, "a"}));
  EXPECT_TRUE(tries[0].answered);
  EXPECT_EQ(tries[0].reason, "rank 1 broke");
}

TEST_F(SickWorkerTest, GetsNoWorkInTheResumedRunEither) {
  ScriptedPool first(workers_on("a", 1, 3), measured);
  first.fail_on(1);
  run(first, make_batch(1, 1));
  reopen();
  ScriptedPool second(workers_on("a", 1, 3), measured);

  const auto records = run(second, make_batch(5, 1));

  EXPECT_EQ(count_measured(records), 5);
  EXPECT_EQ(count_starts(second, 1), 0);
}

TEST_F(SickWorkerTest, OfTheResumedRunIsTheSameOnlyOnTheSameHost) {
  ScriptedPool first(workers_on("a", 1, 2), measured);
  first.fail_on(1);
  run(first, make_batch(1, 1));
  reopen();
  ScriptedPool second(workers_on("b", 1, 2), measured);

  run(second, make_batch(3, 1));

  EXPECT_EQ(second.size(), 2);
}

TEST_F(SickWorkerTest, WorksInTheResumedRunIfTheOthersAreTooFew) {
  ScriptedPool first(workers_on("a", 1, 3), measured);
  first.fail_on(1);
  run(first, make_batch(1, 2));
  reopen();
  ScriptedPool second(workers_on("a", 1, 2), measured);

  const auto records = run(second, make_batch(2, 2));

  EXPECT_EQ(count_measured(records), 2);
}

TEST_F(SickWorkerTest, HasAnotherChanceWhenFailuresAreForgotten) {
  ScriptedPool first(workers_on("a", 1, 2), measured);
  first.fail_on(1);
  run(first, make_batch(1, 1));
  reopen();
  journal_->forget_failures();
  ScriptedPool second(workers_on("a", 1, 2), measured);

  run(second, make_batch(3, 1));

  EXPECT_EQ(count_starts(second, 1), 1);
}

TEST_F(SickWorkerTest, IsNobodyIfTheExperimentFailsElsewhereToo) {
  ScriptedPool pool(workers_on("a", 1, 3), measured);
  pool.fail_on(1, 1);
  pool.fail_on(2, 1);

  const auto records = run(pool, make_batch(1, 1));

  EXPECT_EQ(kind_of(records.at(0)), FailureKind::error);
  EXPECT_EQ(pool.starts().size(), 2U);
  EXPECT_EQ(pool.size(), 3);
}

TEST_F(SickWorkerTest, OfTheOnlyGroupIsTriedTwiceAndKept) {
  ScriptedPool pool(workers_on("a", 1, 2), measured);
  pool.fail_on(2);

  const auto records = run(pool, make_batch(2, 2));

  EXPECT_EQ(kind_of(records.at(0)), FailureKind::error);
  EXPECT_EQ(kind_of(records.at(1)), FailureKind::error);
  EXPECT_EQ(pool.starts().size(), 4U);
  EXPECT_EQ(pool.size(), 2);
}

TEST_F(SickWorkerTest, IsNobodyIfTheSameRanksSucceedTheSecondTime) {
  ScriptedPool pool(workers_on("a", 1, 2), measured);
  pool.fail_on(2, 1);

  const auto records = run(pool, make_batch(2, 2));

  EXPECT_EQ(count_measured(records), 2);
  EXPECT_EQ(pool.size(), 2);
}

TEST_F(SickWorkerTest, IsNobodyIfAllRanksSayTheSame) {
  ScriptedPool pool(workers_on("a", 1, 3), [](const Experiment&) -> Outcome {
    return Failed{FailureKind::error, "the loss scale is exhausted"};
  });

  run(pool, make_batch(1, 1));

  EXPECT_EQ(pool.starts().size(), 1U);
}

TEST_F(SickWorkerTest, IsOneThatHasLessMemoryThanTheLimit) {
  const OutOfMemory below{2, MemoryCategory::activations, 10, 50, 100};
  int tries = 0;
  ScriptedPool pool(workers_on("a", 1, 3), [&](const Experiment&) -> Outcome {
    if (tries++ == 0) return below;
    return Measured{};
  });

  const auto records = run(pool, make_batch(2, 2));

  EXPECT_EQ(count_measured(records), 2);
  EXPECT_EQ(count_starts(pool, 2), 1);
  EXPECT_EQ(pool.size(), 2);
}

TEST_F(SickWorkerTest, IsOneThatReportsThatItsProcessHasNoMemory) {
  const Completion completion{1, OutOfMemory{2, {}, 0, 100, 100}, {2}};
  const auto failed = find_fault(completion, workers_on("a", 1, 2));

  ASSERT_TRUE(failed);
  EXPECT_THAT(culprits_of(*failed), ElementsAre(2));
  EXPECT_FALSE(find_fault({1, OutOfMemory{2, {}, 51, 50, 100}, {2}}, workers_on("a", 1, 2)))
      << "the limit was reached in a step";
}

TEST_F(SickWorkerTest, IsNobodyIfTheSystemEndedAWorkerForWantOfMemory) {
  WorkerInfo info;
  info.rank = 2;
  info.devices = {{"cpu", "", 1000, 900, true, ""}};
  info.devices.front().bounds = {{"control group /job", 400, 0, "cgroup 1:2"},
                                 {"Slurm", 500, 0, "Slurm job 7"},
                                 {"ulimit -v", 300, 0, ""}};
  const OutOfMemory outcome = outcome_of_kill(info);
  EXPECT_EQ(outcome.rank, 2);
  EXPECT_EQ(outcome.in_use, 400U);
  EXPECT_EQ(outcome.limit, 400U);
  EXPECT_EQ(outcome.refusal,
            "the system's out-of-memory killer ended it: control group /job has "
            "400 B, and all of it was in use");
  ScriptedPool pool(workers_on("a", 1, 3), [&](const Experiment&) -> Outcome { return outcome; });

  const auto records = run(pool, make_batch(1, 2));

  EXPECT_EQ(pool.starts().size(), 1U) << "the same again would end another worker";
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(std::get<OutOfMemory>(records[0].outcome), outcome);
}

TEST_F(SickWorkerTest, IsNobodyIfTheLimitIsReached) {
  const OutOfMemory above{1, MemoryCategory::activations, 51, 50, 100};
  ScriptedPool pool(workers_on("a", 1, 3), [&](const Experiment&) -> Outcome { return above; });

  const auto records = run(pool, make_batch(1, 2));

  EXPECT_EQ(std::get<OutOfMemory>(records.at(0).outcome), above);
  EXPECT_EQ(pool.starts().size(), 1U);
}

TEST_F(SickWorkerTest, ThatIsStuckLosesItsExperimentToTheOthers) {
  ScriptedPool pool(workers_on("a", 1, 2), measured);
  pool.get_stuck_in("x0");

  const auto records = run(pool, make_batch(3, 1));

  EXPECT_EQ(count_measured(records), 3);
  EXPECT_THAT(records[0].ranks, ElementsAre(2));
  EXPECT_EQ(pool.size(), 2) << "it came back";
}

TEST_F(SickWorkerTest, LeavesNoFailureBehindIfTheRunIsStoppedBeforeTheSecondTry) {
  ScriptedPool pool(workers_on("a", 1, 2), measured);
  pool.fail_on(1);
  bool stop = false;
  pool.call_while_waiting([&] { stop = true; });
  Scheduler scheduler(pool, *journal_, {}, [&] { return stop; });

  const auto records = scheduler.run(make_batch(1, 1));

  EXPECT_THAT(records, IsEmpty());
  EXPECT_THAT(journal_->records(), IsEmpty());
  EXPECT_FALSE(journal_->find(make_named("x0", 1)));
}

}  // namespace
}  // namespace dstune::sick_worker_test
