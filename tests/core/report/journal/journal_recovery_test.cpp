// What a journal survives: torn and damaged lines, full disks, other people's files, deletion.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "tests/core/report/records.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::journal_recovery_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::FullDisk;
using testing_support::make_experiment;
using testing_support::make_identity;
using testing_support::make_measured;
using testing_support::make_record;
using testing_support::TemporaryDirectory;

class JournalRecoveryTest : public testing::Test {
 protected:
  Journal create() const { return {path_, Journal::Mode::create, make_identity()}; }
  Journal resume() const { return {path_, Journal::Mode::resume, make_identity(), false, 0}; }

  std::size_t lines() const { return split(read_text_file(path_), '\n').size() - 1; }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "journal.jsonl";
  Experiment first_ = make_experiment(0, 1);
  Experiment second_ = make_experiment(1, 2);
};

TEST_F(JournalRecoveryTest, LastLineTornAtAnyByteIsLeftOut) {
  {
    Journal journal = create();
    journal.finished(make_record(first_, make_measured(9.7)));
    journal.started(second_, {1, 2});
  }
  const std::string whole = read_text_file(path_);
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;

  for (std::size_t size = last; size < whole.size(); ++size) {
    const JournalContent content = read_journal(whole.substr(0, size), path_);

    ASSERT_EQ(content.whole_lines.size(), last) << "torn at byte " << size;
    ASSERT_TRUE(content.damaged.empty());
    ASSERT_EQ(content.records.size(), 1U);
    ASSERT_TRUE(content.crashes.empty());
  }
  EXPECT_EQ(read_journal(whole, path_).whole_lines, whole);
}

TEST_F(JournalRecoveryTest, ResumeCutsATornLineOff) {
  {
    Journal journal = create();
    journal.finished(make_record(first_, make_measured(9.7)));
    journal.started(second_, {1, 2});
  }
  const std::string whole = read_text_file(path_);
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;

  for (const std::size_t size : {last + 1, last + 100, whole.size() - 1}) {
    write_file_atomically(path_, whole.substr(0, size), Durability::process_crash);

    { EXPECT_EQ(resume().records().size(), 1U) << "torn at byte " << size; }

    const std::string repaired = read_text_file(path_);
    EXPECT_EQ(repaired.substr(0, last), whole.substr(0, last));
    EXPECT_THAT(repaired.substr(last), HasSubstr(R"({"schema":3,"type":"run")"));
    EXPECT_EQ(lines(), 3U);
  }
}

TEST_F(JournalRecoveryTest, FirstLineTornIsAnEmptyJournal) {
  { const Journal journal = create(); }
  const std::string whole = read_text_file(path_);

  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() - 1}) {
    write_file_atomically(path_, whole.substr(0, size), Durability::process_crash);

    { EXPECT_TRUE(resume().records().empty()); }

    EXPECT_EQ(lines(), 1U) << "torn at byte " << size;
  }
}

TEST_F(JournalRecoveryTest, ZerosAfterAPowerLossAreATornLine) {
  { const Journal journal = create(); }
  const std::string whole = read_text_file(path_);
  write_file_atomically(path_, whole + std::string(100, '\0') + "\n");

  EXPECT_TRUE(resume().records().empty());

  EXPECT_EQ(lines(), 2U);
}

TEST_F(JournalRecoveryTest, ADamagedLineIsMeasuredAgainAndTheOldFileKept) {
  {
    Journal journal = create();
    journal.finished(make_record(first_, make_measured(9.7)));
    journal.finished(make_record(second_, make_measured(4.2)));
  }
  std::string damaged = read_text_file(path_);
  damaged[damaged.find("9.7")] = '8';
  write_file_atomically(path_, damaged);

  {
    const Journal journal = resume();
    EXPECT_FALSE(journal.find(first_));
    EXPECT_TRUE(journal.find(second_));
  }

  EXPECT_EQ(read_text_file(path_ + ".bak"), damaged);
  EXPECT_EQ(lines(), 3U);
  EXPECT_TRUE(resume().find(second_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".bak.2"));
}

TEST_F(JournalRecoveryTest, AFileThatIsNoJournalIsNotTouched) {
  for (const auto mode : {Journal::Mode::resume, Journal::Mode::replace}) {
    write_file_atomically(path_, "a line of mine\n");

    EXPECT_THAT([&] { Journal(path_, mode, make_identity()); },
                ThrowsMessage<ConfigError>(HasSubstr("is not dstune-mpi's")));

    EXPECT_EQ(read_text_file(path_), "a line of mine\n");
  }
}

TEST_F(JournalRecoveryTest, AnotherSchemaIsRefused) {
  write_file_atomically(path_, "{\"schema\":1,\"type\":\"run\"}\n");

  EXPECT_THAT([&] { resume(); }, ThrowsMessage<ConfigError>(HasSubstr("/schema  is 1")));
}

TEST_F(JournalRecoveryTest, AJournalOfSchema2IsContinued) {
  {
    Journal journal = create();
    journal.finished(make_record(first_, make_measured(9.7)));
  }
  std::string old;
  for (const auto& line : split(read_text_file(path_), '\n')) {
    if (line.empty()) continue;
    json::object content = parse_json(line).as_object();
    content["schema"] = 2;
    content.erase("crc32");
    old += to_json_text(content, 0) + "\n";
  }
  write_file_atomically(path_, old);

  resume().finished(make_record(second_, make_measured(4.2)));

  const Journal journal = resume();
  EXPECT_TRUE(journal.find(first_));
  EXPECT_TRUE(journal.find(second_));
  EXPECT_TRUE(read_text_file(path_).starts_with(old));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".bak"));
}

TEST_F(JournalRecoveryTest, ReplaceStartsAnewWithoutAMomentBetween) {
  {
    Journal journal = create();
    journal.finished(make_record(first_, make_measured(9.7)));
  }

  {
    const Journal journal(path_, Journal::Mode::replace, make_identity());
    EXPECT_TRUE(journal.records().empty());
    EXPECT_EQ(journal.past_processes().size(), 1U);  // what it left behind can still be removed
    EXPECT_TRUE(is_journal_in_use(path_));
  }

  EXPECT_EQ(lines(), 1U);
  EXPECT_FALSE(resume().find(first_));
}

TEST_F(JournalRecoveryTest, AJournalDeletedDuringTheRunLosesNothing) {
  {
    Journal journal = create();
    journal.finished(make_record(first_, make_measured(9.7)));
    std::filesystem::remove(path_);
    journal.finished(make_record(second_, make_measured(4.2)));
    EXPECT_TRUE(journal.is_in_place());
  }

  EXPECT_EQ(resume().records().size(), 2U);
}

TEST_F(JournalRecoveryTest, AFullDiskIsAnErrorAndLeavesNoHalfLine) {
  Journal journal = create();
  const std::string before = read_text_file(path_);
  {
    const FullDisk full_disk(before.size() + 50);
    EXPECT_THAT(
        [&] {
          journal.started(first_, {1, 2});
        },
        ThrowsMessage<Error>(AllOf(HasSubstr(path_), HasSubstr("File too large"))));
  }
  EXPECT_EQ(read_text_file(path_), before);

  journal.finished(make_record(second_, make_measured(1)));

  EXPECT_EQ(lines(), 2U);
}

TEST_F(JournalRecoveryTest, ARunEndedByAFullDiskCanBeResumed) {
  {
    Journal journal = create();
    const FullDisk full_disk(read_text_file(path_).size() + 200);
    EXPECT_THROW(journal.finished(make_record(first_, make_measured(1))), Error);
  }

  Journal journal = resume();
  journal.finished(make_record(first_, make_measured(1)));

  EXPECT_EQ(journal.records().size(), 1U);
  EXPECT_EQ(lines(), 3U);
}

}  // namespace
}  // namespace dstune::journal_recovery_test
