#include "core/report/files/heartbeat.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/json_parser.hpp"
#include "tests/core/report/records.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::heartbeat_test {
namespace {

using testing_support::make_experiment;
using testing_support::make_identity;
using testing_support::make_measured;
using testing_support::make_record;
using testing_support::TemporaryDirectory;

class HeartbeatTest : public testing::Test {
 protected:
  RunStatus status() const {
    return run_status_from_json(parse_json(read_text_file(status_)).as_object());
  }

  TemporaryDirectory directory_;
  std::string folder_ = directory_ / "results";
  std::string status_ = folder_ + "/status.json";
  ResultsDirectory results_ =
      ResultsDirectory::prepare(folder_, directory_ / "exps", ExistingResults::refuse);
  Journal journal_{results_.journal_path(), Journal::Mode::create, make_identity()};
  Progress progress_{Metric::throughput};
  Heartbeat heartbeat_{results_, journal_, progress_};
};

TEST_F(HeartbeatTest, WritesWhatIsKnownSoFar) {
  progress_.line(make_record(make_experiment(1, 2), make_measured(9)), false, 1);

  heartbeat_.beat();

  EXPECT_EQ(status().state, RunState::running);
  EXPECT_EQ(status().best, "z1_gas1_tmbspg2");
  EXPECT_TRUE(status().provisional);
  EXPECT_EQ(status().experiments, 1);
  EXPECT_EQ(status().process, this_process());
}

TEST_F(HeartbeatTest, IsDueAtOnceAndThenNotForAWhile) {
  heartbeat_.beat_if_due();
  EXPECT_TRUE(std::filesystem::remove(status_));

  heartbeat_.beat_if_due();

  EXPECT_FALSE(std::filesystem::exists(status_));
}

TEST_F(HeartbeatTest, SaysWhatRuns) {
  progress_.begins("z1_gas1_tmbspg2", 0);

  heartbeat_.beat();

  ASSERT_EQ(status().standing.running.size(), 1U);
  EXPECT_EQ(status().standing.running.front().name, "z1_gas1_tmbspg2");
}

TEST_F(HeartbeatTest, NewsDoNotWriteTheFileEachTime) {
  heartbeat_.beat_if_due();
  EXPECT_TRUE(std::filesystem::remove(status_));
  heartbeat_.has_news();

  heartbeat_.beat_if_due();

  EXPECT_FALSE(std::filesystem::exists(status_));
}

TEST_F(HeartbeatTest, WritesADeletedFolderAnew) {
  std::filesystem::remove_all(folder_);

  heartbeat_.beat();

  EXPECT_TRUE(std::filesystem::exists(status_));
  EXPECT_TRUE(std::filesystem::exists(results_.journal_path()));
}

TEST_F(HeartbeatTest, EndsARunWhoseJournalWasReplaced) {
  write_file_atomically(results_.journal_path(), "another's");

  EXPECT_THROW(heartbeat_.beat_if_due(), Error);

  EXPECT_FALSE(std::filesystem::exists(status_));
}

TEST_F(HeartbeatTest, AStatusThatCannotBeWrittenEndsNoRun) {
  std::filesystem::create_directories(status_ + "/in the way");

  EXPECT_NO_THROW(heartbeat_.beat_if_due());
}

}  // namespace
}  // namespace dstune::heartbeat_test
