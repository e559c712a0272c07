#include "core/report/files/run_folder.hpp"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::run_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::TemporaryDirectory;

constexpr std::time_t kMoment = 1'795'864'953;  // 2026-11-28T11:22:33Z

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() {
    config_.source = file("gpt2.json");
    config_.autotuning.results_dir = root_;
  }

  /// A configuration's file that is there.
  std::string file(const std::string& name) const {
    const fs::path path = fs::path(directory_ / "configurations") / name;
    fs::create_directories(path.parent_path());
    if (!fs::exists(path)) write_file_atomically(path.string(), "{}", Durability::process_crash);
    return path.string();
  }

  /// The results_dir that `options` lead to.
  std::string settled(const CommandLine& options = {}, std::time_t now = kMoment) const {
    TuningConfig config = config_;
    settle_run_folder(config, options, now);
    return config.autotuning.results_dir;
  }
  /// Begins a run.
  std::string begin(std::time_t now = kMoment) const {
    TuningConfig config = config_;
    settle_run_folder(config, {}, now);
    make_run_folder(config, {});
    point_latest_at(config.autotuning);
    return config.autotuning.results_dir;
  }
  std::string fault_of(const CommandLine& options) const {
    try {
      return settled(options);
    } catch (const ConfigError& fault) {
      return fault.what();
    }
  }

  TemporaryDirectory directory_;
  std::string root_ = directory_ / "autotuning_results";
  TuningConfig config_;
  CommandLine resume_ = [] {
    CommandLine options;
    options.resume = true;
    return options;
  }();
  CommandLine overwrite_ = [] {
    CommandLine options;
    options.overwrite = true;
    return options;
  }();
};

TEST_F(RunFolderTest, IsNamedByTheConfigurationAndTheTime) {
  TuningConfig config = config_;

  settle_run_folder(config, {}, kMoment);

  EXPECT_EQ(config.autotuning.results_dir, root_ + "/gpt2-20261128T112233");
  EXPECT_EQ(config.autotuning.exps_dir, root_ + "/gpt2-20261128T112233/exps");
  EXPECT_FALSE(fs::exists(root_)) << "nothing is made before the input is known to be right";
}

TEST_F(RunFolderTest, AFolderThatIsNamedIsThatFolder) {
  config_.autotuning.has_own_results_dir = true;
  begin();

  EXPECT_EQ(settled(), root_);
  EXPECT_EQ(settled(resume_), root_);
  EXPECT_EQ(asked_run(config_).folder, root_);
}

TEST_F(RunFolderTest, ExperimentsStayWhereTheFileHasThem) {
  config_.autotuning.has_own_exps_dir = true;
  config_.autotuning.exps_dir = "mine";
  TuningConfig config = config_;

  settle_run_folder(config, {}, kMoment);

  EXPECT_EQ(config.autotuning.exps_dir, "mine");
}

TEST_F(RunFolderTest, TwoRunsOfOneSecondDoNotMeet) {
  const std::string first = begin();
  const std::string second = begin();
  const std::string later = begin(kMoment + 1);

  EXPECT_EQ(second, first + "-2");
  EXPECT_EQ(fs::read_symlink(root_ + "/latest"), fs::path(later).filename());
  EXPECT_THAT(run_folders(root_), ElementsAre("gpt2-20261128T112233", "gpt2-20261128T112233-2",
                                              "gpt2-20261128T112234"));
}

TEST_F(RunFolderTest, ResumeGoesOnWithTheLastRunOfTheVeryFile) {
  const std::string first = begin();
  const std::string last = begin(kMoment + 60);
  config_.source = file("other.json");
  begin(kMoment + 120);
  config_.source = file("gpt2.json");

  EXPECT_EQ(settled(resume_), last);
  EXPECT_EQ(asked_run(config_).folder, last);
  EXPECT_FALSE(asked_run(config_).is_of_another);

  TuningConfig named = config_;  // as --results-dir FIRST --resume
  named.autotuning.results_dir = first;
  named.autotuning.has_own_results_dir = true;
  point_latest_at(named.autotuning);
  EXPECT_EQ(settled(resume_), first) << "it was gone on with last";
}

TEST_F(RunFolderTest, AFileIsKnownByItsPathWhereverItIsAskedFrom) {
  const std::string last = begin();

  config_.source = fs::relative(config_.source);

  EXPECT_EQ(read_text_file(last + "/config_file.txt"),
            fs::canonical(file("gpt2.json")).string() + "\n");
  EXPECT_EQ(settled(resume_), last);
}

TEST_F(RunFolderTest, AnotherFileOfTheSameNameIsAnotherConfiguration) {
  const std::string others = begin();
  config_.source = file("other.json");
  begin(kMoment + 60);
  config_.source = file("elsewhere/gpt2.json");

  const std::string fault = fault_of(resume_);
  EXPECT_THAT(fault, HasSubstr("no run of this file"));
  EXPECT_THAT(fault, HasSubstr("--results-dir with one of " + others + " (runs of other"));
  EXPECT_EQ(settled(overwrite_, kMoment + 180), root_ + "/gpt2-20261128T112533");
  EXPECT_TRUE(asked_run(config_).is_of_another);
  EXPECT_EQ(asked_run(config_).folder, root_ + "/other-20261128T112333") << "the last of all";
}

TEST_F(RunFolderTest, ARunThatDoesNotSayOfWhichFileItIsCountsAsAnothers) {
  const std::string earlier = begin();
  fs::remove(earlier + "/config_file.txt");

  EXPECT_NE(settled(overwrite_, kMoment + 60), earlier);
  EXPECT_THAT(fault_of(resume_), HasSubstr(earlier));
}

TEST_F(RunFolderTest, WhatComesFromNoFileIsNeverOverwritten) {
  config_.source = "-";
  const std::string last = begin();

  EXPECT_EQ(settled(resume_), last);
  EXPECT_NE(settled(overwrite_, kMoment + 60), last);
}

TEST_F(RunFolderTest, WithoutARunResumeBeginsOne) { EXPECT_EQ(settled(resume_), settled({})); }

TEST_F(RunFolderTest, WhoseFolderItIsStaysAsItWasWritten) {
  TuningConfig named = config_;
  named.autotuning.results_dir = begin();
  named.autotuning.has_own_results_dir = true;
  named.source = file("other.json");

  record_configuration(named);

  EXPECT_EQ(settled(resume_), named.autotuning.results_dir);
}

TEST_F(RunFolderTest, AFolderOfTheUsersChoiceIsNotWrittenInto) {
  config_.autotuning.has_own_results_dir = true;
  fs::create_directories(root_);

  record_configuration(config_);

  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(RunFolderTest, AnOverwriteThatFindsNoneDoesNotTakeAFolderOfTheSameSecond) {
  const std::string others = begin();
  TuningConfig config = config_;
  config.source = file("elsewhere/gpt2.json");
  settle_run_folder(config, overwrite_, kMoment);

  make_run_folder(config, overwrite_);

  EXPECT_EQ(config.autotuning.results_dir, others + "-2");
}

TEST_F(RunFolderTest, WithoutALinkTheRunGoesOnAndTheNewestFolderIsTheLast) {
  const std::string blocked = root_ + "/latest." + std::to_string(::getpid()) + ".tmp";
  fs::create_directories(blocked + "/in the way");

  testing::internal::CaptureStderr();
  const std::string last = begin();

  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cannot create the link"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(root_ + "/latest")));
  EXPECT_EQ(status_folder(root_), last);
  EXPECT_EQ(settled(resume_), last);
}

TEST_F(RunFolderTest, ResumeSaysHowToGoOnWithAnEarlierVersionsRun) {
  fs::create_directories(root_);
  write_file_atomically(root_ + "/journal.jsonl", "{}", Durability::process_crash);

  EXPECT_THAT(fault_of(resume_), HasSubstr("--results-dir " + root_));
}

TEST_F(RunFolderTest, OverwriteReplacesTheLastRunOfTheConfiguration) {
  begin();
  const std::string own = begin(kMoment + 60);
  config_.source = file("other.json");
  begin(kMoment + 120);
  config_.source = file("gpt2.json");

  EXPECT_EQ(settled(overwrite_, kMoment + 180), own);
}

TEST_F(RunFolderTest, LooksIntoNoFolderThatOnlyLooksAlike) {
  for (const char* name : {"gpt2-large-20261128T112233", "gpt2", "gpt2-2026",
                           "gpt2-20261128T11223x", "20261128T112233"}) {
    fs::create_directories(root_ + "/" + name);
  }

  EXPECT_THAT(run_folders(root_, run_prefix("gpt2.json")), ElementsAre());
  EXPECT_THAT(run_folders(root_, run_prefix("gpt2-large.json")),
              ElementsAre("gpt2-large-20261128T112233"));
}

TEST_F(RunFolderTest, StatusIsThatOfTheLastRunUnlessTheFolderHasItsOwn) {
  const std::string last = begin();
  EXPECT_EQ(status_folder(root_), last);
  EXPECT_EQ(status_folder(last), last);

  write_file_atomically(
      root_ + "/status.json",
      R"({"schema": 2, "status": "found", "exit_code": 0, "experiments": 1, "elapsed_s": 1})",
      Durability::process_crash);
  EXPECT_EQ(status_folder(root_), root_);
}

TEST_F(RunFolderTest, AProfileOfTheMachineLiesBesideTheRuns) {
  const std::string last = begin();
  AutotuningConfig named;
  named.has_own_results_dir = true;
  named.results_dir = last;

  EXPECT_EQ(results_root(named), root_) << "as a run that starts again names its folder";
  named.results_dir = "mine";
  EXPECT_EQ(results_root(named), "mine");
  EXPECT_EQ(results_root(AutotuningConfig()), kDefaultResultsDir);
}

TEST_F(RunFolderTest, ALinkIsReplacedButNothingElse) {
  begin();
  fs::remove(root_ + "/latest");
  write_file_atomically(root_ + "/latest", "mine", Durability::process_crash);

  begin(kMoment + 60);

  EXPECT_EQ(read_text_file(root_ + "/latest"), "mine");
}

TEST(RunPrefix, IsHandyInAShell) {
  EXPECT_EQ(run_prefix("a/ds config(1).json"), "ds_config_1_-");
  EXPECT_EQ(run_prefix("-"), "stdin-");
  EXPECT_EQ(run_prefix("..json"), "_.-");
  EXPECT_EQ(run_prefix("zero3.json"), "zero3-");
}

}  // namespace
}  // namespace dstune::run_folder_test
