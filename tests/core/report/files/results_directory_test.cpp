// What a results directory is made of, and what it leaves alone.
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "tests/core/report/files/results_directory_fixture.hpp"
#include "tests/support/full_disk.hpp"

namespace dstune::results_directory_test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::FullDisk;
using testing_support::make_experiment;
using testing_support::make_identity;
using testing_support::make_measured;
using testing_support::make_record;
using testing_support::ResultsDirectoryTest;

TEST_F(ResultsDirectoryTest, IsMadeWithItsParents) {
  const auto directory =
      ResultsDirectory::prepare(results_ + "/a/b", exps_, ExistingResults::refuse);

  EXPECT_TRUE(fs::is_directory(results_ + "/a/b"));
  EXPECT_TRUE(fs::is_directory(exps_));
  EXPECT_EQ(directory.journal_path(), results_ + "/a/b/journal.jsonl");
}

TEST_F(ResultsDirectoryTest, ExistingResultsAreNotTouchedUnlessAskedFor) {
  make_results();

  EXPECT_THAT([&] { prepare(ExistingResults::refuse); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr(results_), HasSubstr("--resume"), HasSubstr("--overwrite"))));

  EXPECT_TRUE(fs::exists(results_ + "/journal.jsonl"));
  EXPECT_TRUE(fs::exists(results_ + "/z2_gas1_tmbspg4/metrics.json"));
}

TEST_F(ResultsDirectoryTest, ExistingExperimentFilesAreNotTouchedUnlessAskedFor) {
  make_results();
  fs::remove_all(results_);

  EXPECT_THAT([&] { prepare(ExistingResults::refuse); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr(exps_), HasSubstr("exps_dir"))));
}

TEST_F(ResultsDirectoryTest, AnEmptyOneOrAStatusAloneIsNoResult) {
  prepare(ExistingResults::refuse).write_status({});

  EXPECT_NO_THROW(prepare(ExistingResults::refuse));
  EXPECT_NO_THROW(prepare(ExistingResults::resume));
}

TEST_F(ResultsDirectoryTest, ResumeNeedsAJournal) {
  make_results();
  EXPECT_NO_THROW(prepare(ExistingResults::resume));
  fs::remove(results_ + "/journal.jsonl");

  EXPECT_THAT([&] { prepare(ExistingResults::resume); },
              ThrowsMessage<ConfigError>(HasSubstr("no journal.jsonl")));
}

TEST_F(ResultsDirectoryTest, WhatIsThereAlreadyIsNotWrittenAgain) {
  make_results();
  const auto directory = prepare(ExistingResults::resume);
  Record record = make_record(make_experiment(2, 4), make_measured(10));
  const std::string folder = results_ + "/z2_gas1_tmbspg4";
  const std::string metrics = read_text_file(folder + "/metrics.json");
  const std::vector<std::string> paths = {folder + "/exp.json", folder + "/ds_config.json",
                                          folder + "/metrics.json",
                                          exps_ + "/z2_gas1_tmbspg4.json"};
  const fs::file_time_type long_ago = fs::last_write_time(paths[0]) - std::chrono::hours(1);
  for (const auto& path : paths) fs::last_write_time(path, long_ago);

  directory.write_record(record);
  for (const auto& path : paths) EXPECT_EQ(fs::last_write_time(path), long_ago) << path;

  // What has as many letters, but others, is not the same.
  write_file_atomically(paths[2], std::string(metrics.size(), 'x'));
  directory.write_record(record);
  EXPECT_EQ(read_text_file(paths[2]), metrics);

  record.outcome = make_measured(20);
  directory.write_record(record);
  EXPECT_NE(read_text_file(paths[2]), metrics);
  EXPECT_GT(fs::last_write_time(paths[0]), long_ago);
  EXPECT_EQ(fs::last_write_time(paths[1]), long_ago);
}

TEST_F(ResultsDirectoryTest, OverwriteRemovesResultsAndOnlyExperimentsFromExpsDir) {
  make_results();
  write_file_atomically(exps_ + "/config.json", "{\"optimizer\": {}}");
  write_file_atomically(exps_ + "/notes.txt", "keep");

  prepare(ExistingResults::overwrite);

  EXPECT_FALSE(fs::exists(results_ + "/z2_gas1_tmbspg4"));
  EXPECT_FALSE(fs::exists(exps_ + "/z2_gas1_tmbspg4.json"));
  EXPECT_TRUE(fs::exists(exps_ + "/config.json"));
  EXPECT_TRUE(fs::exists(exps_ + "/notes.txt"));
}

TEST_F(ResultsDirectoryTest, OverwriteLeavesAloneWhatIsNoResult) {
  put("thesis.tex");

  EXPECT_THAT([&] { prepare(ExistingResults::overwrite); },
              ThrowsMessage<ConfigError>(HasSubstr("holds no results of a tuning run")));

  EXPECT_TRUE(fs::exists(results_ + "/thesis.tex"));
}

TEST_F(ResultsDirectoryTest, OverwriteNeverEmptiesTheWorkingDirectoryOrOneAboveIt) {
  make_results();
  ensure_directory(results_ + "/inside");
  const fs::path before = fs::current_path();
  fs::current_path(results_ + "/inside");

  EXPECT_THAT([&] { ResultsDirectory::prepare("..", exps_, ExistingResults::overwrite); },
              ThrowsMessage<ConfigError>(HasSubstr("working or home directory")));
  EXPECT_THAT([&] { prepare(ExistingResults::overwrite); },
              ThrowsMessage<ConfigError>(HasSubstr("working or home directory")));

  fs::current_path(before);
  EXPECT_TRUE(fs::exists(results_ + "/journal.jsonl"));
}

TEST_F(ResultsDirectoryTest, OverwriteRefusesResultsInUse) {
  const auto directory = prepare(ExistingResults::refuse);
  const Journal journal(directory.journal_path(), Journal::Mode::create, make_identity());

  EXPECT_THAT([&] { prepare(ExistingResults::overwrite); },
              ThrowsMessage<ConfigError>(HasSubstr("in use by another run")));

  EXPECT_TRUE(fs::exists(directory.journal_path()));
}

TEST_F(ResultsDirectoryTest, AFileInTheWayIsNamed) {
  write_file_atomically(results_, "x");

  EXPECT_THAT([&] { prepare(ExistingResults::refuse); },
              ThrowsMessage<ConfigError>(HasSubstr("is a file")));
}

TEST_F(ResultsDirectoryTest, AMeasuredExperimentHasMetricsInDeepSpeedsUnits) {
  const auto directory = prepare(ExistingResults::refuse);
  const Record record = make_record(make_experiment(2, 4, 3), make_measured(8));

  directory.write_record(record);

  const std::string folder = "z2_gas3_tmbspg4";
  const json::value metrics = read_json(folder + "/metrics.json");
  EXPECT_DOUBLE_EQ(metrics.at("fwd").as_double(), 0.15e6 / 3);
  EXPECT_DOUBLE_EQ(metrics.at("bwd").as_double(), 0.2625e6 / 3);
  EXPECT_DOUBLE_EQ(metrics.at("step").as_double(), 0.075e6 / 3);
  EXPECT_DOUBLE_EQ(metrics.at("latency").as_double(), 0.5e6);
  EXPECT_DOUBLE_EQ(metrics.at("FLOPS_per_gpu").as_double(), 136e9);
  EXPECT_DOUBLE_EQ(metrics.at("throughput").as_double(), 8);
  EXPECT_EQ(metrics.at("rank"), 0);
  EXPECT_EQ(metrics.at("dstune"), json::value(to_json(record.outcome)));
  EXPECT_EQ(read_json(folder + "/ds_config.json"), json::value(record.experiment.ds_config.json()));
  EXPECT_EQ(read_json(folder + "/exp.json").at("dstune").at("ranks"), (json::array{1, 2}));
  EXPECT_FALSE(fs::exists(results_ + "/" + folder + "/stderr.log"));
  const json::value described = parse_json(read_text_file(exps_ + "/" + folder + ".json"));
  EXPECT_EQ(described.at("name").as_string(), folder);
  EXPECT_EQ(described.at("num_gpus"), 2);
}

TEST_F(ResultsDirectoryTest, AFailedExperimentHasItsReasonUntilARetrySucceeds) {
  const auto directory = prepare(ExistingResults::refuse);
  const Experiment experiment = make_experiment(2, 4);
  const std::string folder = results_ + "/" + experiment.name;

  directory.write_record(
      make_record(experiment, Failed{FailureKind::worker_lost, "rank 2 of nodeA died"}));
  const std::string reason = read_text_file(folder + "/stderr.log");
  const bool had_metrics = fs::exists(folder + "/metrics.json");
  directory.write_record(make_record(experiment, make_measured(8)));

  EXPECT_EQ(reason, "failed: rank 2 of nodeA died\n");
  EXPECT_FALSE(had_metrics);
  EXPECT_FALSE(fs::exists(folder + "/stderr.log"));
  EXPECT_TRUE(fs::exists(folder + "/metrics.json"));
}

TEST_F(ResultsDirectoryTest, NamesThatAreNoFolderAreRefused) {
  const auto directory = prepare(ExistingResults::refuse);

  for (const char* name : {"", ".", "..", "../x", "/etc"}) {
    EXPECT_THROW(directory.experiment_path(name), std::invalid_argument) << name;
  }
}

TEST_F(ResultsDirectoryTest, ModelInfoHasDeepSpeedsKeys) {
  prepare(ExistingResults::refuse).write_model_info({124439808, 124439808, 123456});

  const json::value info = read_json("profile_model_info/model_info.json");
  EXPECT_EQ(info.at("num_params"), 124439808);
  EXPECT_EQ(info.at("trainable_num_params"), 124439808);
  EXPECT_EQ(info.at("activation_mem_per_gpu"), 123456);
  EXPECT_EQ(info.at("rank"), 0);
}

TEST_F(ResultsDirectoryTest, AFullDiskIsAnErrorWithPathAndReason) {
  const auto directory = prepare(ExistingResults::refuse);
  const FullDisk full_disk(16);

  EXPECT_THAT([&] { directory.write_record(make_record(make_experiment(2, 4), make_measured(8))); },
              ThrowsMessage<Error>(AllOf(HasSubstr("cannot write"), HasSubstr("z2_gas1_tmbspg4"))));
}

}  // namespace
}  // namespace dstune::results_directory_test
