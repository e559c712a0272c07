#include "core/search/schedule/scheduler.hpp"

#include <memory>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scripted_pool.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::scheduler_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::make_named;
using testing_support::ScriptedPool;
using testing_support::TemporaryDirectory;
using testing_support::workers_on;

Outcome measured(const Experiment& experiment) {
  Measured outcome;
  outcome.samples_per_s = static_cast<double>(experiment.ranks);
  return outcome;
}

std::vector<std::string> names_of(const std::vector<Record>& records) {
  std::vector<std::string> names;
  for (const auto& record : records) names.push_back(record.experiment.name);
  return names;
}

bool is_measured(const Record& record) { return std::holds_alternative<Measured>(record.outcome); }

class SchedulerTest : public testing::Test {
 protected:
  std::unique_ptr<Journal> open(Journal::Mode mode) const {
    return std::make_unique<Journal>(directory_ / "journal.jsonl", mode,
                                     RunIdentity{{}, "cpu", "simulated"});
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Journal> journal_ = open(Journal::Mode::create);
};

TEST_F(SchedulerTest, RunsInOrderOnDisjointRanksAsManyAsFit) {
  ScriptedPool pool(workers_on("a", 1, 4), measured);
  Scheduler scheduler(pool, *journal_, {}, {});

  const auto records = scheduler.run({make_named("x", 2), make_named("y", 2), make_named("z", 2)});

  EXPECT_THAT(names_of(records), ElementsAre("x", "y", "z"));
  EXPECT_THAT(pool.names(), ElementsAre("x", "y", "z"));
  EXPECT_THAT(pool.starts()[0].ranks, ElementsAre(1, 2));
  EXPECT_THAT(pool.starts()[1].ranks, ElementsAre(3, 4));
  EXPECT_EQ(pool.starts()[1].running, 2);
  EXPECT_EQ(pool.starts()[2].running, 2) << "x is over, y still runs";
}

TEST_F(SchedulerTest, SaysWhatIsSentToWorkers) {
  ScriptedPool pool(workers_on("a", 1, 1), measured);
  std::vector<std::string> sent;
  Scheduler(pool, *journal_, {}, {}).run({make_named("x", 1)});
  Scheduler scheduler(pool, *journal_, {}, {});
  scheduler.call_at_start([&](const Experiment& each) { sent.push_back(each.name); });

  scheduler.run({make_named("x", 1), make_named("y", 1)});

  EXPECT_THAT(sent, ElementsAre("y")) << "the journal knows the other";
}

TEST_F(SchedulerTest, RunsEqualExperimentsOnce) {
  ScriptedPool pool(workers_on("a", 1, 1), measured);
  Scheduler scheduler(pool, *journal_, {}, {});

  const auto records = scheduler.run({make_named("x", 1), make_named("x", 1)});

  EXPECT_EQ(records.size(), 1U);
  EXPECT_THAT(pool.names(), ElementsAre("x"));
}

TEST_F(SchedulerTest, WritesFinishedBeforeTheListenerHearsOfIt) {
  ScriptedPool pool(workers_on("a", 1, 1), measured);
  std::vector<std::size_t> records_when_heard;
  const auto listener = [&](const Record&, bool from_journal) {
    EXPECT_FALSE(from_journal);
    records_when_heard.push_back(journal_->records().size());
  };
  Scheduler scheduler(pool, *journal_, listener, {});

  scheduler.run({make_named("x", 1), make_named("y", 1)});

  EXPECT_THAT(records_when_heard, ElementsAre(1, 2));
}

TEST_F(SchedulerTest, WritesStartedBeforeTheExperimentIsSent) {
  const auto experiment = make_named("x", 1);
  const auto crash = [](const Experiment&) -> Outcome { throw std::runtime_error("killed"); };
  for (const auto mode : {Journal::Mode::resume, Journal::Mode::resume}) {
    ScriptedPool pool(workers_on("a", 1, 1), crash);
    journal_.reset();
    journal_ = open(mode);
    Scheduler scheduler(pool, *journal_, {}, {});
    EXPECT_THROW(scheduler.run({experiment}), std::runtime_error);
  }

  journal_.reset();
  const auto found = open(Journal::Mode::resume)->find(experiment);

  ASSERT_TRUE(found) << "two crashes while it ran";
  EXPECT_EQ(std::get<Failed>(found->outcome).kind, FailureKind::quarantined);
}

TEST_F(SchedulerTest, WritesAQuarantineOnceAsThatIsProgress) {
  const auto experiment = make_named("x", 1);
  for (int start = 0; start < 4; ++start) {
    journal_.reset();
    journal_ = open(Journal::Mode::resume);
    if (start < 2) {
      journal_->started(experiment, {1});
      continue;
    }
    ScriptedPool pool(workers_on("a", 1, 1), measured);
    Scheduler(pool, *journal_, {}, {}).run({experiment});

    EXPECT_THAT(pool.names(), IsEmpty());
    ASSERT_EQ(journal_->records().size(), 1U);
    const auto& failed = std::get<Failed>(journal_->records().front().outcome);
    EXPECT_EQ(failed.kind, FailureKind::quarantined);
  }
}

TEST_F(SchedulerTest, DoesNotRunWhatTheJournalKnows) {
  ScriptedPool first_pool(workers_on("a", 1, 1), measured);
  Scheduler(first_pool, *journal_, {}, {}).run({make_named("x", 1)});
  journal_.reset();
  journal_ = open(Journal::Mode::resume);
  ScriptedPool pool(workers_on("a", 1, 1), measured);
  std::vector<bool> from_journal;
  const auto listener = [&](const Record&, bool known) { from_journal.push_back(known); };

  const auto records =
      Scheduler(pool, *journal_, listener, {}).run({make_named("x", 1), make_named("y", 1)});

  EXPECT_THAT(names_of(records), ElementsAre("x", "y"));
  EXPECT_THAT(pool.names(), ElementsAre("y"));
  EXPECT_THAT(from_journal, ElementsAre(true, false));
}

TEST_F(SchedulerTest, TriesAnExperimentThatLostAWorkerOnOtherRanks) {
  ScriptedPool pool(workers_on("a", 1, 4), measured);
  pool.lose_worker_in("x");
  Scheduler scheduler(pool, *journal_, {}, {});

  const auto records = scheduler.run({make_named("x", 2)});

  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(is_measured(records[0]));
  ASSERT_EQ(pool.starts().size(), 2U);
  EXPECT_THAT(pool.starts()[1].ranks, ElementsAre(3, 4));
  EXPECT_EQ(journal_->records().size(), 1U);
}

TEST_F(SchedulerTest, GivesUpAfterTheSecondLostWorker) {
  ScriptedPool pool(workers_on("a", 1, 5), measured);
  pool.lose_worker_in("x", 2);
  Scheduler scheduler(pool, *journal_, {}, {});

  const auto records = scheduler.run({make_named("x", 2), make_named("y", 2)});

  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(std::get<Failed>(records[0].outcome).kind, FailureKind::worker_lost);
  EXPECT_TRUE(is_measured(records[1]));
}

TEST_F(SchedulerTest, EndsWithTheNumbersWhenNoGroupIsLargeEnough) {
  ScriptedPool pool(workers_on("a", 1, 3), measured);
  pool.lose_worker_in("x");
  Scheduler scheduler(pool, *journal_, {}, {});

  const auto records = scheduler.run({make_named("x", 3)});

  EXPECT_THAT(records, IsEmpty());
  ASSERT_TRUE(scheduler.shortage());
  EXPECT_EQ(scheduler.shortage()->experiment, "x");
  EXPECT_EQ(scheduler.shortage()->needed, 3);
  EXPECT_EQ(scheduler.shortage()->left, 2);
}

TEST_F(SchedulerTest, StartsNothingAfterAShortage) {
  ScriptedPool pool(workers_on("a", 1, 3), measured);
  pool.lose_worker_in("x");
  Scheduler scheduler(pool, *journal_, {}, {});
  scheduler.run({make_named("x", 3)});

  EXPECT_THAT(scheduler.run({make_named("y", 1)}), IsEmpty());
  EXPECT_THAT(pool.names(), ElementsAre("x"));
}

TEST_F(SchedulerTest, WhatLosesAWorkerInEveryRunIsQuarantined) {
  const auto experiment = make_named("x", 2);
  for (int run = 0; run < 2; ++run) {
    ScriptedPool pool(workers_on("a", 1, 2), measured);
    pool.lose_worker_in("x");
    journal_.reset();
    journal_ = open(Journal::Mode::resume);
    Scheduler(pool, *journal_, {}, {}).run({experiment});
  }
  journal_.reset();

  const auto found = open(Journal::Mode::resume)->find(experiment);

  ASSERT_TRUE(found);
  EXPECT_EQ(std::get<Failed>(found->outcome).kind, FailureKind::quarantined);
}

TEST_F(SchedulerTest, WaitsForRunningExperimentsBeforeItGivesUp) {
  ScriptedPool pool(workers_on("a", 1, 3), measured);
  pool.lose_worker_in("x");
  Scheduler scheduler(pool, *journal_, {}, {});

  scheduler.run({make_named("x", 1), make_named("y", 1), make_named("z", 3)});

  EXPECT_TRUE(scheduler.shortage());
  EXPECT_THAT(names_of(journal_->records()), testing::UnorderedElementsAre("x", "y"));
}

TEST_F(SchedulerTest, PrefersTheHostThatFitsBest) {
  auto workers = workers_on("a", 1, 3);
  workers.push_back({4, "b"});
  workers.push_back({5, "b"});
  ScriptedPool pool(workers, measured);
  Scheduler scheduler(pool, *journal_, {}, {});

  scheduler.run({make_named("x", 2)});

  EXPECT_THAT(pool.starts()[0].ranks, ElementsAre(4, 5));
}

TEST_F(SchedulerTest, WaitsRatherThanSpanMoreHostsThanNeeded) {
  auto workers = workers_on("a", 1, 3);
  for (const auto& worker : workers_on("b", 4, 3)) workers.push_back(worker);
  ScriptedPool pool(workers, measured);
  Scheduler scheduler(pool, *journal_, {}, {});

  scheduler.run({make_named("x", 2), make_named("y", 2), make_named("z", 2)});

  ASSERT_EQ(pool.starts().size(), 3U);
  EXPECT_THAT(pool.starts()[2].ranks, ElementsAre(1, 2)) << "not {3, 6}";
  EXPECT_EQ(scheduler.slots(2), 2);
}

TEST_F(SchedulerTest, StartsNothingAfterAStopRequest) {
  ScriptedPool pool(workers_on("a", 1, 1), measured);
  const auto stop = [&] { return !pool.starts().empty(); };
  Scheduler scheduler(pool, *journal_, {}, stop);

  const auto records = scheduler.run({make_named("x", 1), make_named("y", 1)});

  EXPECT_THAT(names_of(records), ElementsAre("x")) << "what runs is waited for";
  EXPECT_THAT(pool.names(), ElementsAre("x"));
}

TEST_F(SchedulerTest, LeavesRunningExperimentsIfThePoolReturnsOnAStopRequest) {
  ScriptedPool pool(workers_on("a", 1, 1), measured);
  pool.interrupt();
  const auto stop = [&] { return !pool.starts().empty(); };
  Scheduler scheduler(pool, *journal_, {}, stop);

  const auto records = scheduler.run({make_named("x", 1), make_named("y", 1)});

  EXPECT_THAT(records, IsEmpty());
  EXPECT_THAT(pool.names(), ElementsAre("x"));
}

}  // namespace
}  // namespace dstune::scheduler_test
