#include "core/report/journal/journal.hpp"

#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/base/text.hpp"
#include "core/report/journal/journal_line.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "tests/core/report/records.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::journal_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;
using testing_support::make_experiment;
using testing_support::make_identity;
using testing_support::make_measured;
using testing_support::make_record;
using testing_support::TemporaryDirectory;

class JournalTest : public testing::Test {
 protected:
  Journal create() const { return {path_, Journal::Mode::create, make_identity()}; }
  Journal resume() const { return {path_, Journal::Mode::resume, make_identity(), false, 0}; }

  // A run that starts `experiment` and is killed before it ends.
  void crash_during(const Experiment& experiment, bool first = false) const {
    Journal journal = first ? create() : resume();
    journal.started(experiment, {1, 2});
  }

  std::size_t lines() const { return split(read_text_file(path_), '\n').size() - 1; }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "journal.jsonl";
  Experiment first_ = make_experiment(0, 1);
  Experiment second_ = make_experiment(1, 2);
};

TEST_F(JournalTest, AContinuedRunGoesOnWithWhatTheFirstBeganWith) {
  RunIdentity identity = make_identity();
  identity.learnt = {{"factors", json::object()}};
  EXPECT_EQ(Journal(path_, Journal::Mode::create, identity).learnt(), identity.learnt);

  RunIdentity other = make_identity();
  other.learnt = {{"factors", json::object{{"products", 2}}}};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Journal(path_, Journal::Mode::resume, other, false, 0).learnt(), identity.learnt);
  }
}

TEST_F(JournalTest, AContinuedRunThatBeganWithNothingGoesOnWithNothing) {
  create();
  RunIdentity identity = make_identity();
  identity.learnt = {{"factors", json::object()}};

  EXPECT_TRUE(Journal(path_, Journal::Mode::resume, identity, false, 0).learnt().empty());
}

TEST_F(JournalTest, WhatWasReadBeforeIsNotReadAgain) {
  create().finished(make_record(first_, make_measured(9.7)));
  auto earlier = read_earlier_journal(path_).value();
  earlier.content.records.at(0).outcome = make_measured(1);  // as no other reader would see it

  const Journal journal(path_, Journal::Mode::resume, make_identity(), false, 0, this_process(), {},
                        &earlier);

  ASSERT_EQ(journal.records().size(), 1U);
  EXPECT_EQ(std::get<Measured>(journal.records()[0].outcome).samples_per_s, 1);
  EXPECT_TRUE(journal.find(first_));
}

TEST_F(JournalTest, WhatChangedSinceItWasReadIsReadAgain) {
  create().finished(make_record(first_, make_measured(9.7)));
  auto earlier = read_earlier_journal(path_).value();
  resume().finished(make_record(second_, make_measured(2)));

  const Journal journal(path_, Journal::Mode::resume, make_identity(), false, 0, this_process(), {},
                        &earlier);

  EXPECT_EQ(journal.records().size(), 2U);
  EXPECT_TRUE(journal.find(second_));
}

TEST_F(JournalTest, ResumeFindsWhatWasFinished) {
  {
    Journal journal = create();
    journal.started(first_, {1, 2});
    journal.finished(make_record(first_, make_measured(9.7)));
  }

  const Journal journal = resume();

  ASSERT_EQ(journal.records().size(), 1U);
  const auto found = journal.find(first_);
  ASSERT_TRUE(found);
  EXPECT_EQ(std::get<Measured>(found->outcome).samples_per_s, 9.7);
  EXPECT_EQ(found->ranks, (std::vector<int>{1, 2}));
  EXPECT_EQ(found->started, 1.5);
  EXPECT_EQ(found->finished, 4.25);
  EXPECT_FALSE(journal.find(second_));
}

TEST_F(JournalTest, FindAnswersUnderTheNameThatIsAsked) {
  Journal journal = create();
  journal.finished(make_record(first_, make_measured(9.7)));
  Experiment renamed = first_;
  renamed.name = "profile_model_info";

  EXPECT_EQ(journal.find(renamed)->experiment.name, "profile_model_info");
}

TEST_F(JournalTest, ResumeOfNothingStartsAnew) {
  Journal journal = resume();
  journal.started(first_, {1});

  EXPECT_TRUE(journal.records().empty());
  EXPECT_EQ(lines(), 2U);
}

TEST_F(JournalTest, CreateRefusesAnExistingFile) {
  { const Journal journal = create(); }

  EXPECT_THAT([&] { create(); }, ThrowsMessage<Error>(HasSubstr("File exists")));
}

TEST_F(JournalTest, AnOutcomeIsFinalUnlessAWorkerWasLost) {
  Journal journal = create();
  journal.finished(make_record(first_, Failed{FailureKind::worker_lost, "rank 3 died"}));
  journal.finished(make_record(second_, Failed{FailureKind::timeout, "600 s"}));

  EXPECT_FALSE(journal.find(first_));
  EXPECT_TRUE(journal.find(second_));
  EXPECT_EQ(journal.records().size(), 2U);
}

TEST_F(JournalTest, ForgetsFailuresOfEarlierRunsIfAsked) {
  const Experiment third = make_experiment(2, 4);
  {
    Journal journal = create();
    journal.finished(make_record(first_, Failed{FailureKind::error, "rank 3 broke"}));
    journal.finished(make_record(second_, OutOfMemory{}));
  }
  crash_during(third);
  crash_during(third);
  Journal journal = resume();
  ASSERT_TRUE(journal.find(first_) && journal.find(third));

  journal.forget_failures();

  EXPECT_FALSE(journal.find(first_));
  EXPECT_TRUE(journal.find(second_)) << "what does not fit still does not";
  EXPECT_FALSE(journal.find(third)) << "quarantined";
  journal.finished(make_record(first_, Failed{FailureKind::error, "again"}));
  EXPECT_TRUE(journal.find(first_)) << "this run's";
}

TEST_F(JournalTest, ForgetsWhatTheSystemRefusedIfAsked) {
  {
    Journal journal = create();
    journal.finished(make_record(first_, OutOfMemory{1, {}, 7, 5, 100, 0, "ulimit -v is full"}));
    journal.finished(make_record(second_, OutOfMemory{1, {}, 7, 5, 11}));
  }
  Journal journal = resume();
  ASSERT_TRUE(journal.find(first_) && journal.find(second_));

  journal.forget_failures();

  EXPECT_FALSE(journal.find(first_));
  EXPECT_TRUE(journal.find(second_)) << "the limit was reached";
}

TEST_F(JournalTest, KeepsWhatWasMeasuredWhereTheSystemHadRefusedMemory) {
  {
    Journal journal = create();
    journal.finished(make_record(first_, OutOfMemory{1, {}, 7, 5, 100, 0, "ulimit -v is full"}));
  }
  {
    Journal journal = resume();
    journal.forget_failures();
    journal.finished(make_record(first_, testing_support::make_measured(2)));
  }

  const auto found = resume().find(first_);

  ASSERT_TRUE(found);
  EXPECT_TRUE(std::holds_alternative<Measured>(found->outcome));
}

TEST_F(JournalTest, KnowsTheNamesOfTunedLists) {
  Experiment listed = first_;
  listed.name = "z1_b[0.9, 0.95]_" + std::string(200, 'x') + "_\xc3\xa9_again1";
  {
    Journal journal = create();
    journal.finished(make_record(listed, testing_support::make_measured(2)));
  }

  EXPECT_TRUE(resume().find(listed));
}

TEST_F(JournalTest, RemembersNamesAndProcessesOfEarlierRuns) {
  {
    Journal journal = create();
    journal.started(first_, {1, 2});
  }

  const Journal journal = resume();

  EXPECT_THAT(journal.names(), testing::ElementsAre(first_.name));
  EXPECT_THAT(journal.past_processes(), testing::ElementsAre(this_process()));
}

TEST_F(JournalTest, OneCrashIsTriedAgainTwoAreQuarantined) {
  crash_during(first_, true);
  EXPECT_FALSE(resume().find(first_));
  crash_during(first_);

  const auto found = resume().find(first_);

  ASSERT_TRUE(found);
  EXPECT_EQ(std::get<Failed>(found->outcome).kind, FailureKind::quarantined);
  EXPECT_FALSE(resume().find(second_));
}

TEST_F(JournalTest, WhatWasWrittenBeforeAKillIsThereAndTheLockIsNot) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Journal journal = create();
    journal.finished(make_record(first_, make_measured(9.7)));
    journal.started(second_, {1, 2});
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);

  const Journal journal = resume();

  EXPECT_TRUE(journal.find(first_));
  EXPECT_FALSE(journal.find(second_));
  EXPECT_EQ(lines(), 4U);
}

TEST_F(JournalTest, AResultAfterACrashWins) {
  crash_during(first_, true);
  {
    Journal journal = resume();
    journal.started(first_, {1, 2});
    journal.finished(make_record(first_, make_measured(9.7)));
  }
  crash_during(second_);

  const Journal journal = resume();

  EXPECT_TRUE(std::holds_alternative<Measured>(journal.find(first_)->outcome));
  EXPECT_FALSE(journal.find(second_));
}

TEST_F(JournalTest, AStopOnPurposeIsNoCrash) {
  for (int run = 0; run < 3; ++run) {
    Journal journal = run == 0 ? create() : resume();
    journal.started(first_, {1, 2});
    journal.stopped();
  }

  EXPECT_FALSE(resume().find(first_));
}

TEST_F(JournalTest, TheClockGoesOnWhereTheLastRunEnded) {
  {
    Journal journal = create();
    auto record = make_record(first_, make_measured(9.7));
    journal.finished(record);
  }
  const json::object line = {{"schema", 3}, {"type", "stopped"}, {"at_s", 1000.5}};
  write_file_atomically(path_, read_text_file(path_) + seal_line(line) + "\n");

  EXPECT_GE(resume().now(), 1000.5);
  EXPECT_LT(resume().now(), 2000.0);
}

TEST_F(JournalTest, ASecondRunCannotUseTheSameDirectory) {
  const Journal journal = create();

  EXPECT_TRUE(is_journal_in_use(path_));
  EXPECT_THAT([&] { resume(); }, ThrowsMessage<ConfigError>(HasSubstr("another run")));
}

TEST_F(JournalTest, TheLockEndsWithTheRun) {
  { const Journal journal = create(); }

  EXPECT_FALSE(is_journal_in_use(path_));
  EXPECT_FALSE(is_journal_in_use(directory_ / "none"));
}

TEST_F(JournalTest, ResumeRefusesAnotherModelAndMachineAndSaysWhatToDo) {
  { const Journal journal = create(); }
  RunIdentity other = make_identity();
  other.model["n_layer"] = 2;
  other.model["name"] = "a label";
  other.machine = "4 x Another CPU";

  EXPECT_THAT([&] { Journal(path_, Journal::Mode::resume, other); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("/model/n_layer  is 2 now, but was 12 there"),
                        HasSubstr("/machine"), HasSubstr("--overwrite"), HasSubstr("--results-dir"),
                        HasSubstr("--force-resume"), Not(HasSubstr("/backend")))));
}

TEST_F(JournalTest, ResumeRefusesAnotherReleaseOfDeepSpeed) {
  { const Journal journal = create(); }
  RunIdentity other = make_identity();
  other.deepspeed = "0.16.9";

  EXPECT_THAT(
      [&] { Journal(path_, Journal::Mode::resume, other); },
      ThrowsMessage<ConfigError>(HasSubstr("/dstune/deepspeed_version  is \"0.16.9\" now")));
}

TEST_F(JournalTest, ForceResumesAnotherMachine) {
  {
    Journal journal = create();
    journal.finished(make_record(first_, make_measured(9.7)));
  }
  RunIdentity other = make_identity();
  other.machine = "4 x Another CPU";

  const Journal journal(path_, Journal::Mode::resume, other, true);

  EXPECT_TRUE(journal.find(first_));
}

}  // namespace
}  // namespace dstune::journal_test
