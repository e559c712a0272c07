#include "core/report/journal/journal_reader.hpp"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/report/journal/journal_line.hpp"
#include "tests/core/report/records.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::journal_reader_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::make_experiment;
using testing_support::make_identity;
using testing_support::make_measured;
using testing_support::make_record;
using testing_support::TemporaryDirectory;
using Origin = JournalContent::Origin;

json::object event(const char* type, double at = 1) {
  return {{"schema", 3}, {"type", type}, {"time", "2026-01-01T00:00:00Z"}, {"at_s", at}};
}

std::string sealed(const json::object& line) { return seal_line(line) + "\n"; }

json::object run_event() {
  json::object line = event("run");
  line["identity"] = to_json(make_identity());
  return line;
}

json::object finished_event(double samples_per_s = 10) {
  json::object line = event("finished");
  const Record record = make_record(make_experiment(1, 2), make_measured(samples_per_s));
  for (auto& member : to_json(record)) line[member.key()] = member.value();
  return line;
}

json::object started_event() {
  json::object line = event("started");
  line["experiment"] = to_json(make_experiment(1, 2));
  return line;
}

std::string of_schema_2(json::object line) {
  line["schema"] = 2;
  return to_json_text(line, 0) + "\n";
}

JournalContent read(const std::string& text) { return read_journal(text, "journal.jsonl"); }

TEST(ReadJournal, SkipsADamagedLineAndReadsTheRest) {
  std::string broken = sealed(finished_event());
  broken[broken.find("cpu")] = 'C';

  const auto content = read(sealed(run_event()) + broken + sealed(finished_event(20)));

  EXPECT_EQ(content.origin, Origin::ours);
  ASSERT_EQ(content.records.size(), 1U);
  EXPECT_EQ(std::get<Measured>(content.records[0].outcome).samples_per_s, 20);
  EXPECT_EQ(content.whole_lines, sealed(run_event()) + sealed(finished_event(20)));
  EXPECT_THAT(
      describe_damage(content, "journal.jsonl"),
      ElementsAre("journal.jsonl: line 2 is damaged (its checksum does not match); skipped"));
}

TEST(ReadJournal, NamesTheFirstDamagedLinesAndCountsTheRest) {
  std::string text = sealed(run_event());
  for (int i = 0; i < 25; ++i) text += "x\n";

  const auto warnings = describe_damage(read(text), "j");

  ASSERT_EQ(warnings.size(), 11U);
  EXPECT_EQ(warnings.front(), "j: line 2 is damaged (it is not a JSON object); skipped");
  EXPECT_EQ(warnings.back(), "j: 15 more lines are damaged; skipped");
}

TEST(ReadJournal, WhatRanAtADamagedLineDidNotCrash) {
  const std::string begin = sealed(run_event()) + sealed(started_event());

  EXPECT_EQ(read(begin + sealed(run_event())).crashes.size(), 1U);
  EXPECT_TRUE(read(begin + "damaged\n" + sealed(run_event())).crashes.empty());
}

TEST(ReadJournal, KnowsItsOwnFilesByAnyWholeLine) {
  const std::string run = sealed(run_event());

  EXPECT_EQ(read(run).origin, Origin::ours);
  EXPECT_EQ(read("damaged\n" + run).origin, Origin::ours);
  EXPECT_EQ(read("").origin, Origin::remnant);
  EXPECT_EQ(read(run.substr(0, 40)).origin, Origin::remnant);
  EXPECT_EQ(read(run.substr(0, 40) + std::string(10, '\0')).origin, Origin::remnant);
  EXPECT_EQ(read(std::string(4096, '\0')).origin, Origin::remnant);
  EXPECT_EQ(read("{\"my\": \"own\"}\n").origin, Origin::foreign);
  EXPECT_EQ(read("a line of mine").origin, Origin::foreign);
  EXPECT_THAT([] { read_own_journal("a line of mine", "j"); },
              ThrowsMessage<ConfigError>(HasSubstr("is not dstune-mpi's")));
}

// The lines' own memory is released long before.
TEST(ReadJournal, LeavesNothingInTheMemoryOfALine) {
  const auto content = read(sealed(run_event()) + sealed(finished_event()));

  const auto* const own = json::storage_ptr().get();
  EXPECT_EQ(content.identity.value().model.storage().get(), own);
  EXPECT_EQ(content.identity->learnt.storage().get(), own);
  EXPECT_EQ(content.records.at(0).experiment.ds_config.json().storage().get(), own);
}

TEST(ReadJournal, KnowsTheLimitOfTheLastExperimentEvenIfItCrashedTheRun) {
  json::object last = started_event();
  last["experiment"].as_object()["settings"].as_object()["memory_limit_bytes"] = 12345;

  EXPECT_EQ(read(sealed(run_event())).memory_limit, Bytes{0}) << "nothing was started";
  EXPECT_EQ(read(sealed(run_event()) + sealed(started_event()) + sealed(last)).memory_limit,
            Bytes{12345});
}

TEST(IsOwnJournal, ReadsNoFurtherThanItsFirstLine) {
  json::object newer = run_event();
  newer["schema"] = 4;

  EXPECT_TRUE(is_own_journal("damaged\n" + sealed(run_event()) + sealed(newer), "j"));
  EXPECT_THAT([&] { is_own_journal(sealed(newer) + sealed(run_event()), "j"); },
              ThrowsMessage<ConfigError>(HasSubstr("/schema  is 4")));
  EXPECT_FALSE(is_own_journal("", "j"));
  EXPECT_FALSE(is_own_journal(sealed(run_event()).substr(0, 40), "j"));
  EXPECT_THAT([] { is_own_journal("a line of mine", "j"); },
              ThrowsMessage<ConfigError>(HasSubstr("is not dstune-mpi's")));
}

TEST(ReadEarlierJournal, ReadsTheFileIfThereIsOne) {
  const TemporaryDirectory directory;
  const std::string path = directory / "journal.jsonl";
  EXPECT_FALSE(read_earlier_journal(path));
  const std::string text = sealed(run_event()) + sealed(finished_event());
  write_file_atomically(path, text, Durability::process_crash);

  const auto earlier = read_earlier_journal(path);

  ASSERT_TRUE(earlier);
  EXPECT_EQ(earlier->text, text);
  EXPECT_EQ(earlier->content.records.size(), 1U);
}

TEST(ReadJournal, ReadsSchema2) {
  const auto content = read(of_schema_2(run_event()) + of_schema_2(finished_event()));

  EXPECT_EQ(content.records.size(), 1U);
  EXPECT_TRUE(content.damaged.empty());
  EXPECT_EQ(content.identity, make_identity());
}

TEST(ReadJournal, BelievesNoLineWithoutAChecksumOnceThereAreSome) {
  const auto content = read(sealed(run_event()) + of_schema_2(finished_event()));

  EXPECT_TRUE(content.records.empty());
  ASSERT_EQ(content.damaged.size(), 1U);
  EXPECT_EQ(content.damaged[0].cause, "its checksum is missing");
}

TEST(ReadJournal, RefusesOnlyWhatAnotherVersionWrote) {
  json::object newer = run_event();
  newer["schema"] = 4;

  EXPECT_THAT([] { read("{\"schema\":1,\"type\":\"run\"}\n"); },
              ThrowsMessage<ConfigError>(HasSubstr("/schema  is 1")));
  EXPECT_THAT([&] { read(sealed(run_event()) + sealed(newer)); },
              ThrowsMessage<ConfigError>(HasSubstr("/schema  is 4")));
  EXPECT_EQ(read(of_schema_2(run_event()) + "{\"schema\":1}\n").damaged.size(), 1U);
}

TEST(ReadJournal, BelievesNoForgedNumbers) {
  const auto cause_of = [](const std::function<void(json::object&)>& forge) {
    json::object line = finished_event();
    forge(line);
    const auto content = read(sealed(run_event()) + sealed(line));
    EXPECT_TRUE(content.records.empty());
    return content.damaged.empty() ? "" : content.damaged[0].cause;
  };
  const auto outcome = [](json::object& line) -> json::object& {
    return line["outcome"].as_object();
  };

  EXPECT_EQ(cause_of([](auto& line) { line["ranks"] = {1, -1}; }), "ranks holds -1");
  EXPECT_EQ(cause_of([](auto& line) { line["at_s"] = 1e308; }), "at_s is 1e+308");
  EXPECT_EQ(cause_of([](auto& line) { line["started_s"] = -1; }), "started_s is -1");
  EXPECT_EQ(cause_of([](auto& line) { line["finished_s"] = 1e308; }), "finished_s is 1e+308");
  EXPECT_EQ(cause_of([](auto& line) { line["finished_s"] = 0.5; }),
            "finished_s is before started_s");
  EXPECT_EQ(cause_of([&](auto& line) { outcome(line)["samples_per_s"] = 1e308; }),
            "samples_per_s is 1e+308");
  EXPECT_EQ(cause_of([&](auto& line) { outcome(line)["forward_time_s"] = -2; }),
            "forward_time_s is -2");
  EXPECT_THAT(cause_of([&](auto& line) { outcome(line)["step_time_s"].as_object()["min"] = 9; }),
              HasSubstr("step_time_s is 9"));
  EXPECT_EQ(cause_of([](auto& line) { line["experiment"].as_object()["ranks"] = -4; }),
            "experiment.ranks is -4");
  const auto settings = [](json::object& line) -> json::object& {
    return line["experiment"].as_object()["ds_config"].as_object();
  };
  EXPECT_THAT(cause_of([&](auto& line) { settings(line)["gradient_accumulation_steps"] = "many"; }),
              HasSubstr("experiment.ds_config: "));
  EXPECT_EQ(cause_of([&](auto& line) { settings(line)["gradient_accumulation_steps"] = 1e16; }),
            "a batch has 4e+16 samples");
  EXPECT_EQ(cause_of([](auto& line) { line["experiment"].as_object()["name"] = "../../x"; }),
            "the experiment's name is not a folder name");
  EXPECT_EQ(cause_of([](auto& line) { line["outcome"] = "good"; }), "it is not an event of a run");
  EXPECT_EQ(cause_of([](auto& line) { line["type"] = "forged"; }), "its type is unknown");
}

TEST(RunIdentity, NamesThePartThatDiffers) {
  const RunIdentity before{
      {}, "cpu", "CPU", "0.19.8", "dstune-mpi 0.1.0", "OpenBLAS 0.3.21", "Open MPI v4.1.4", 2};
  RunIdentity now = before;
  now.program = "dstune-mpi 0.2.0";
  now.libraries = "OpenBLAS 0.3.21, oneDNN 2.6.3";
  now.mpi = "MPICH Version: 4.0.2";
  now.threads_per_rank = 4;

  const auto problems = differences(before, now);

  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].where, "/program");
  EXPECT_EQ(problems[0].what, "is \"dstune-mpi 0.2.0\" now, but was \"dstune-mpi 0.1.0\" there");
  EXPECT_EQ(problems[1].where, "/libraries");
  EXPECT_EQ(problems[2].where, "/mpi");
  EXPECT_EQ(identity_remarks(before, now),
            (std::vector<std::string>{
                "threads per rank are 4 now, but were 2 there: those results are kept, and "
                "measured again where needed"}));
  EXPECT_TRUE(differences(before, before).empty());
  EXPECT_TRUE(identity_remarks(before, before).empty());
}

TEST(RunIdentity, KeepsWhatLibrariesWereFoundAndDoesNotCompareIt) {
  const RunIdentity before{{}, "cuda", "NVIDIA H200", "0.19.8"};
  RunIdentity now = before;
  now.libraries_found = {"CUDA driver: for CUDA 13.0", "NCCL: 2.28.9 (/lib/libnccl.so.2)"};

  EXPECT_EQ(run_identity_from_json(to_json(now)), now);
  EXPECT_EQ(run_identity_from_json(to_json(before)), before);
  EXPECT_TRUE(differences(before, now).empty());
  EXPECT_TRUE(identity_remarks(before, now).empty());
}

// Whoever wrote it did not know of them.
TEST(RunIdentity, DoesNotCompareWhatAnEarlierVersionLeftOut) {
  const RunIdentity now{{}, "cpu", "CPU", "0.19.8", "dstune-mpi 0.1.0", "", "Open MPI v4.1.4", 2};
  json::object old = to_json(now);
  for (const char* key : {"program", "libraries", "mpi", "threads_per_rank"}) old.erase(key);

  const RunIdentity before = run_identity_from_json(old);

  EXPECT_TRUE(differences(before, now).empty());
  EXPECT_EQ(identity_remarks(before, now),
            (std::vector<std::string>{"an earlier version wrote it, without program, mpi: its "
                                      "results are assumed to be of the same"}));
}

}  // namespace
}  // namespace dstune::journal_reader_test
