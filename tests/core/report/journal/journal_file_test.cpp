#include "core/report/journal/journal_file.hpp"

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::journal_file_test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::TemporaryDirectory;

class JournalFileTest : public testing::Test {
 protected:
  JournalFile open() const { return {path_, JournalFile::Open::existing, 0}; }

  void expect_refused(const char* kind) const {
    EXPECT_THAT([&] { open(); }, ThrowsMessage<ConfigError>(HasSubstr(kind)));
    EXPECT_THAT([&] { read_journal_file(path_); }, ThrowsMessage<ConfigError>(HasSubstr(kind)));
    EXPECT_FALSE(is_journal_in_use(path_));
  }

  TemporaryDirectory directory_;
  std::string folder_ = directory_ / "results";
  std::string path_ = folder_ + "/journal.jsonl";

  void SetUp() override { ensure_directory(folder_); }
};

TEST_F(JournalFileTest, FollowsNoSymbolicLink) {
  const std::string target = directory_ / "mine.jsonl";
  write_file_atomically(target, "a line of mine");
  fs::create_symlink(target, path_);

  expect_refused("a symbolic link");

  EXPECT_EQ(read_text_file(target), "a line of mine");
  EXPECT_TRUE(fs::is_symlink(path_));
}

TEST_F(JournalFileTest, DoesNotWaitForAFifo) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);

  expect_refused("a FIFO");

  EXPECT_TRUE(fs::is_fifo(path_));
}

TEST_F(JournalFileTest, RefusesADirectory) {
  fs::create_directory(path_);

  expect_refused("a directory");
}

TEST_F(JournalFileTest, BackUpsNeverReplaceEachOther) {
  EXPECT_EQ(back_up_journal(path_, "one"), path_ + ".bak");
  EXPECT_EQ(back_up_journal(path_, "two"), path_ + ".bak.2");
  EXPECT_EQ(back_up_journal(path_, "one"), path_ + ".bak");
  fs::create_symlink("/nowhere", path_ + ".bak.3");
  EXPECT_EQ(back_up_journal(path_, "three"), path_ + ".bak.4");

  EXPECT_EQ(read_text_file(path_ + ".bak"), "one");
  EXPECT_EQ(read_text_file(path_ + ".bak.2"), "two");
}

TEST_F(JournalFileTest, ADeletedFileIsWrittenAnew) {
  JournalFile file = open();
  file.append("one\n");
  fs::remove(path_);

  file.append("two\n");
  EXPECT_EQ(read_text_file(path_), "one\ntwo\n");

  fs::remove_all(folder_);
  file.stay_in_place();
  EXPECT_EQ(read_text_file(path_), "one\ntwo\n");
  EXPECT_TRUE(file.is_ours());
  EXPECT_TRUE(is_journal_in_use(path_));
}

TEST_F(JournalFileTest, AReplacedFileIsNotTouchedAndNothingIsLost) {
  JournalFile file = open();
  file.append("one\n");
  write_file_atomically(path_, "another run's");

  EXPECT_FALSE(file.is_ours());
  EXPECT_THAT([&] { file.append("two\n"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("was replaced"), HasSubstr(path_ + ".bak"))));

  EXPECT_EQ(read_text_file(path_), "another run's");
  EXPECT_EQ(read_text_file(path_ + ".bak"), "one\n");
}

TEST_F(JournalFileTest, TheLockStaysWithTheNameWhenTheFileIsReplaced) {
  JournalFile file = open();
  file.append("old\n");

  file.replace("new\n");

  EXPECT_EQ(read_text_file(path_), "new\n");
  EXPECT_THAT([&] { open(); }, ThrowsMessage<ConfigError>(HasSubstr("another run")));
  file.append("more\n");
  EXPECT_EQ(read_text_file(path_), "new\nmore\n");
}

TEST_F(JournalFileTest, AWriteThatFailedIsCutOff) {
  JournalFile file = open();
  write_all(open_file(path_, O_WRONLY), "whole\ntor", path_);
  file.adopt("whole\n");

  file.append("next\n");

  EXPECT_EQ(read_text_file(path_), "whole\nnext\n");
}

}  // namespace
}  // namespace dstune::journal_file_test
