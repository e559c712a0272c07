// Scheduler with workers that fail: the others do the work.
#include <algorithm>
#include <memory>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/schedule/scheduler.hpp"
#include "core/search/schedule/worker_faults.hpp"
#include "tests/support/scripted_pool.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::make_named;
using testing_support::ScriptedPool;
using testing_support::TemporaryDirectory;
using testing_support::workers_on;

std::vector<Experiment> make_batch(int count, int ranks) {
  std::vector<Experiment> batch;
  for (int i = 0; i < count; ++i) batch.push_back(make_named("x" + std::to_string(i), ranks));
  return batch;
}

Outcome measured(const Experiment&) { return Measured{}; }

int count_measured(const std::vector<Record>& records) {
  return static_cast<int>(std::count_if(records.begin(), records.end(), [](const Record& record) {
    return std::holds_alternative<Measured>(record.outcome);
  }));
}

/// How often `rank` was given something.
int count_starts(const ScriptedPool& pool, int rank) {
  return static_cast<int>(
      std::count_if(pool.starts().begin(), pool.starts().end(), [&](const auto& start) {
        return std::find(start.ranks.begin(), start.ranks.end(), rank) != start.ranks.end();
      }));
}

FailureKind kind_of(const Record& record) { return std::get<Failed>(record.outcome).kind; }

class SickWorkerTest : public testing::Test {
 protected:
  void reopen() {
    journal_.reset();
    journal_ = open(Journal::Mode::resume);
  }

  std::vector<Record> run(ScriptedPool& pool, const std::vector<Experiment>& batch) {
    return Scheduler(pool, *journal_, {}, {}).run(batch);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Journal> journal_ = open(Journal::Mode::create);

 private:
  std::unique_ptr<Journal> open(Journal::Mode mode) const {
    return std::make_unique<Journal>(directory_ / "journal.jsonl", mode,
                                     RunIdentity{{}, "cpu", "simulated"});
  }
};

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
  pool.on_wait([&] { stop = true; });
  Scheduler scheduler(pool, *journal_, {}, [&] { return stop; });

  const auto records = scheduler.run(make_batch(1, 1));

  EXPECT_THAT(records, IsEmpty());
  EXPECT_THAT(journal_->records(), IsEmpty());
  EXPECT_FALSE(journal_->find(make_named("x0", 1)));
}

TEST_F(SickWorkerTest, WithoutADeviceItsExperimentRunsElsewhere) {
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

TEST_F(SickWorkerTest, WithoutADeviceItIsBackInTheResumedRun) {
  ScriptedPool first(workers_on("a", 1, 3), measured);
  first.lose_device_of(1);
  run(first, make_batch(1, 1));
  reopen();
  ScriptedPool second(workers_on("a", 1, 3), measured);

  run(second, make_batch(4, 1));

  EXPECT_EQ(second.size(), 3);
}

TEST_F(SickWorkerTest, AnExperimentThatCostsTwoDevicesHasFailed) {
  ScriptedPool pool(workers_on("a", 1, 3), measured);
  pool.lose_device_of(1);
  pool.lose_device_of(2);

  const auto records = run(pool, make_batch(1, 1));

  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(kind_of(records[0]), FailureKind::device_lost);
  EXPECT_EQ(pool.size(), 1);
  EXPECT_TRUE(journal_->find(records[0].experiment)) << "not tried again";
}

TEST_F(SickWorkerTest, TooFewDevicesAreAShortage) {
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
}  // namespace dstune
