#include "core/report/files/existing_results.hpp"

#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/base/text.hpp"
#include "tests/core/report/records.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::existing_results_test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::make_experiment;
using testing_support::make_identity;
using testing_support::make_measured;
using testing_support::make_record;
using testing_support::TemporaryDirectory;

constexpr const char* kOthers[] = {".git/HEAD",
                                   ".git/objects/ab/cd",
                                   "checkpoints/global_step10/mp_rank_00_model_states.pt",
                                   "thesis.tex",
                                   "notes.tmp",
                                   "status.json.bak",
                                   "journal.jsonl.old",
                                   "z9_gas1_tmbspg1/exp.json",
                                   "z0_gas1_tmbspg1/plot.png",
                                   "profile_model_info/mine.json"};

class ExistingResultsTest : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text = "mine") const {
    ensure_directory(fs::path(path).parent_path().string());
    write_file_atomically(path, text, Durability::process_crash);
  }

  void put_others() const {
    for (const char* name : kOthers) put(results_ + "/" + name);
    put(exps_ + "/z9_gas1_tmbspg1.json", R"({"name": "z9", "ds_config": {}})");
    put(exps_ + "/z0_gas1_tmbspg1.txt");
  }

  // A run with two experiments that ended.
  void make_results() const {
    const auto directory = ResultsDirectory::prepare(results_, exps_, ExistingResults::refuse);
    Journal journal(directory.journal_path(), Journal::Mode::create, make_identity());
    RunResults results;
    for (const int stage : {0, 1}) {
      results.records.push_back(make_record(make_experiment(stage, 1), make_measured(9)));
      journal.finished(results.records.back());
      directory.write_record(results.records.back());
    }
    results.best = results.records.front();
    directory.write_model_info({});
    directory.write_status({});
    directory.finish(results);
  }

  // path -> content of every file
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(directory_.path())) {
      if (entry.is_symlink() || !entry.is_regular_file()) continue;
      found[entry.path().string()] = read_text_file(entry.path().string());
    }
    return found;
  }

  void prepare(ExistingResults existing) const {
    ResultsDirectory::prepare(results_, exps_, existing);
  }

  void expect_refused(ExistingResults existing, const std::string& why) const {
    const auto before = files();
    EXPECT_THAT([&] { prepare(existing); }, ThrowsMessage<ConfigError>(HasSubstr(why)));
    EXPECT_EQ(files(), before);
  }

  TemporaryDirectory directory_;
  std::string results_ = directory_ / "results";
  std::string exps_ = directory_ / "exps";
};

TEST_F(ExistingResultsTest, OverwriteLeavesEveryOtherFileAsItIs) {
  make_results();
  put_others();
  const auto before = files();

  prepare(ExistingResults::overwrite);

  auto expected = before;
  for (const char* name : {"z0_gas1_tmbspg1", "z1_gas1_tmbspg1"}) {
    for (const char* file : {"/ds_config.json", "/exp.json", "/metrics.json"}) {
      EXPECT_EQ(expected.erase(concat(results_, "/", name, file)), 1U) << name << file;
    }
    EXPECT_EQ(expected.erase(concat(exps_, "/", name, ".json")), 1U);
  }
  for (const char* file : {"status.json", "summary.txt", "results.csv", "ds_config_optimal.json",
                           "profile_model_info/model_info.json"}) {
    EXPECT_EQ(expected.erase(results_ + "/" + file), 1U) << file;
  }
  EXPECT_EQ(files(), expected);
  EXPECT_FALSE(fs::exists(results_ + "/z1_gas1_tmbspg1"));
}

TEST_F(ExistingResultsTest, ACopyOfTheJournalUnderAnotherNameStays) {
  make_results();
  const std::string journal = read_text_file(results_ + "/journal.jsonl");
  for (const char* end : {"backup", "bak2", "bak.", "bak.x"}) {
    put(results_ + "/journal.jsonl." + end, journal);
  }

  prepare(ExistingResults::overwrite);

  for (const char* end : {"backup", "bak2", "bak.", "bak.x"}) {
    EXPECT_TRUE(fs::exists(results_ + "/journal.jsonl." + end)) << end;
  }
}

TEST_F(ExistingResultsTest, FoldersThatARunMadeBeforeItsJournalAreNoOnesResults) {
  const std::string inner = results_ + "/exps";
  ensure_directory(inner);

  for (const auto existing :
       {ExistingResults::refuse, ExistingResults::resume, ExistingResults::overwrite}) {
    EXPECT_NO_THROW(ResultsDirectory::prepare(results_, inner, existing));
  }
  expect_refused(ExistingResults::refuse, "exps");  // of another exps_dir's run
  put(inner + "/mine.txt");
  EXPECT_THROW(ResultsDirectory::prepare(results_, inner, ExistingResults::refuse), ConfigError);
}

TEST_F(ExistingResultsTest, AProfileThatACalibrationLeftIsNoResultAndStays) {
  const std::string profile = results_ + "/host_overhead.json";
  put(profile);

  EXPECT_NO_THROW(ResultsDirectory::prepare(results_, exps_, ExistingResults::refuse));
  make_results();
  EXPECT_NO_THROW(ResultsDirectory::prepare(results_, exps_, ExistingResults::overwrite));

  EXPECT_EQ(read_text_file(profile), "mine");
}

TEST_F(ExistingResultsTest, NothingIsTouchedInAFolderWithoutAJournal) {
  put_others();
  put(results_ + "/summary.txt");
  put(results_ + "/ds_config_optimal.json");

  expect_refused(ExistingResults::refuse, "no results of a tuning run");
  expect_refused(ExistingResults::resume, "no journal.jsonl");
  expect_refused(ExistingResults::overwrite, "no journal.jsonl");
}

TEST_F(ExistingResultsTest, AnothersJournalIsNotTouched) {
  for (const char* text :
       {"a line of mine", "a line of mine\n", "{\"epoch\": 1}\n{\"epoch\": 2}\n"}) {
    put(results_ + "/journal.jsonl", text);

    for (const auto existing :
         {ExistingResults::refuse, ExistingResults::resume, ExistingResults::overwrite}) {
      expect_refused(existing, "is not dstune-mpi's");
    }
  }
}

TEST_F(ExistingResultsTest, AnEmptyJournalMakesNoResultsOfOtherFiles) {
  put(results_ + "/journal.jsonl", "");
  put(results_ + "/summary.txt");

  for (const auto existing :
       {ExistingResults::refuse, ExistingResults::resume, ExistingResults::overwrite}) {
    expect_refused(existing, "summary.txt");
  }
  fs::remove(results_ + "/summary.txt");
  EXPECT_NO_THROW(prepare(ExistingResults::resume));
}

TEST_F(ExistingResultsTest, LinksAndFifosInPlaceOfTheJournalAreRefused) {
  put(directory_ / "mine.jsonl", "");
  fs::create_directory(results_);
  fs::create_symlink(directory_ / "mine.jsonl", results_ + "/journal.jsonl");
  expect_refused(ExistingResults::resume, "a symbolic link");
  expect_refused(ExistingResults::overwrite, "a symbolic link");
  fs::remove(results_ + "/journal.jsonl");

  ASSERT_EQ(::mkfifo((results_ + "/journal.jsonl").c_str(), 0600), 0);
  expect_refused(ExistingResults::resume, "a FIFO");
  expect_refused(ExistingResults::overwrite, "a FIFO");
}

TEST_F(ExistingResultsTest, WhatIsReachedThroughALinkStays) {
  make_results();
  fs::rename(results_ + "/z0_gas1_tmbspg1", directory_ / "elsewhere");
  fs::create_symlink(directory_ / "elsewhere", results_ + "/z0_gas1_tmbspg1");

  prepare(ExistingResults::overwrite);

  EXPECT_TRUE(fs::exists(directory_ / "elsewhere/exp.json"));
  EXPECT_TRUE(fs::is_symlink(results_ + "/z0_gas1_tmbspg1"));
}

TEST_F(ExistingResultsTest, ANameThatIsTakenBySomethingElseIsNamedAtTheStart) {
  make_results();
  fs::remove(results_ + "/results.csv");
  fs::create_directory(results_ + "/results.csv");

  expect_refused(ExistingResults::resume, "not a regular file where results would go: results.csv");
}

TEST_F(ExistingResultsTest, OverwriteThatWasKilledCanBeRepeated) {
  make_results();

  prepare(ExistingResults::overwrite);
  fs::remove(results_ + "/status.json");

  EXPECT_NO_THROW(prepare(ExistingResults::overwrite));
  const Journal journal(results_ + "/journal.jsonl", Journal::Mode::replace, make_identity());
  EXPECT_TRUE(journal.records().empty());
}

TEST_F(ExistingResultsTest, BackupsOfTheJournalGoOthersStay) {
  make_results();
  put(results_ + "/journal.jsonl.bak", read_text_file(results_ + "/journal.jsonl"));
  put(results_ + "/journal.jsonl.bak.2", "mine");
  put(results_ + "/journal.jsonl.bak.3", read_text_file(results_ + "/journal.jsonl"));

  prepare(ExistingResults::overwrite);

  EXPECT_FALSE(fs::exists(results_ + "/journal.jsonl.bak"));
  EXPECT_TRUE(fs::exists(results_ + "/journal.jsonl.bak.2"));
  EXPECT_FALSE(fs::exists(results_ + "/journal.jsonl.bak.3"));
}

TEST_F(ExistingResultsTest, AnotherProgramsExperimentOfTheSameNameIsNotWrittenOver) {
  make_results();
  const std::string theirs = R"({"name": "z3_gas1_tmbspg1", "ds_config": {}})";
  put(results_ + "/z3_gas1_tmbspg1/exp.json", theirs);
  put(exps_ + "/z2_gas1_tmbspg1.json", theirs);

  const auto directory = ResultsDirectory::prepare(results_, exps_, ExistingResults::resume);
  directory.write_record(make_record(make_experiment(3, 1), make_measured(9)));
  directory.write_record(make_record(make_experiment(2, 1), make_measured(9)));

  EXPECT_EQ(read_text_file(results_ + "/z3_gas1_tmbspg1/exp.json"), theirs);
  EXPECT_FALSE(fs::exists(results_ + "/z3_gas1_tmbspg1/ds_config.json"));
  EXPECT_EQ(read_text_file(exps_ + "/z2_gas1_tmbspg1.json"), theirs);
  EXPECT_TRUE(fs::exists(results_ + "/z2_gas1_tmbspg1/exp.json"));
}

}  // namespace
}  // namespace dstune::existing_results_test
