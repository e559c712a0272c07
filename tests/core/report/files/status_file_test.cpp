#include "core/report/files/status_file.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::status_file_test {
namespace {

TEST(StatusFile, SaysHowTheRunEnded) {
  const testing_support::TemporaryDirectory directory;
  const std::string path = directory / "status.json";

  write_status_file(path, {RunState::running, 0, std::nullopt, "", 0, 0});
  const json::value running = parse_json(read_text_file(path));
  write_status_file(path, {RunState::found, 0, "z2_gas1_tmbspg4", "", 12, 34.5});
  const json::value found = parse_json(read_text_file(path));

  EXPECT_EQ(running.at("status"), "running");
  EXPECT_TRUE(running.at("exit_code").is_null());
  EXPECT_TRUE(running.at("best").is_null());
  EXPECT_EQ(found.at("status"), "found");
  EXPECT_EQ(found.at("exit_code"), 0);
  EXPECT_EQ(found.at("best"), "z2_gas1_tmbspg4");
  EXPECT_EQ(found.at("experiments"), 12);
  EXPECT_EQ(found.at("elapsed_s").as_double(), 34.5);
}

TEST(StatusFile, DoesNotGoOnSayingThatARunGoesOnWhenTheDiskIsFull) {
  const testing_support::TemporaryDirectory directory;
  const std::string path = directory / "status.json";
  const RunStatus running{RunState::running, 0, std::nullopt, "", 0, 0};
  const RunStatus failed{RunState::failed, 1, std::nullopt, "no space", 3, 1};

  write_status_file(path, running);
  std::filesystem::create_directory(temporary_path(path));  // no new file, but room in the old one
  write_status_file(path, failed);
  const json::value in_place = parse_json(read_text_file(path));
  std::filesystem::remove(temporary_path(path));
  write_status_file(path, running);
  {
    const testing_support::FullDisk full_disk(10);
    EXPECT_THROW(write_status_file(path, running), Error);
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_THROW(write_status_file(path, failed), Error);
  }

  EXPECT_EQ(in_place.at("status"), "failed");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(StatusFile, SaysWhyAnotherStartMakesSense) {
  RunStatus status;
  status.state = RunState::interrupted;
  EXPECT_FALSE(to_json(status).contains("restart")) << "by a signal";

  status.restart = "worker_lost";
  EXPECT_EQ(to_json(status).at("restart"), "worker_lost");
}

TEST(StatusFile, NamesEveryState) {
  const auto name = [](RunState state) {
    RunStatus status;
    status.state = state;
    return std::string(to_json(status).at("status").as_string());
  };

  EXPECT_EQ(name(RunState::nothing_fits), "nothing_fits");
  EXPECT_EQ(name(RunState::failed), "failed");
  EXPECT_EQ(name(RunState::interrupted), "interrupted");
  EXPECT_EQ(name(RunState::wrong_input), "wrong_input");
}

TEST(StatusFile, TextFormIsExact) {
  RunStatus status{RunState::interrupted, 4, "z1_gas1_tmbspg4", "a signal", 3, 1.5, true};
  status.process = {"nodeA", 4711, 99, "pid:[1]", ""};
  status.heartbeat = 1'795'311'720;

  const json::object object = to_json(status);
  const RunStatus read = run_status_from_json(object);

  EXPECT_EQ(to_json(read), object);
  EXPECT_EQ(object.at("heartbeat"), "2026-11-22T01:42:00Z");
  EXPECT_EQ(read.process, status.process);
  EXPECT_TRUE(read.provisional);
}

TEST(StatusFile, IsReadAsEarlierVersionsWroteIt) {
  const json::object old = {{"schema", 1},     {"status", "running"}, {"exit_code", nullptr},
                            {"best", nullptr}, {"message", ""},       {"experiments", 0},
                            {"elapsed_s", 0}};

  const RunStatus status = run_status_from_json(old);

  EXPECT_EQ(judge(status, look_for(status.process), 1e9), Life::unknown);
}

TEST(StatusFile, SaysWhatRunsAndWhatIsLeftWhileItRuns) {
  RunStatus status{RunState::running, 0, "z1_gas1_tmbspg4", "", 3, 34.5, true};
  status.process = {"nodeA", 4711, 99, "pid:[1]", ""};
  status.heartbeat = 1'795'311'720;
  status.standing = {.running = {{"z2_gas1_tmbspg4", 30}}, .expected = 40, .time_left = 200};

  const RunStatus read = run_status_from_json(to_json(status));

  EXPECT_EQ(to_json(read), to_json(status));
  EXPECT_EQ(describe(read, Life::running, 3),
            "running: 3 of about 40 experiments in 34 s, about 3 min left, best so far "
            "z1_gas1_tmbspg4; nodeA, process 4711, last heartbeat 3 s ago\n"
            "  runs now: z2_gas1_tmbspg4 since 8 s");
  status.state = RunState::found;
  EXPECT_FALSE(to_json(status).contains("running")) << "nothing runs any more";
}

TEST(Judge, TellsTheRunningTheDeadAndTheFinishedApart) {
  RunStatus running;
  running.heartbeat = 1;
  RunStatus found = running;
  found.state = RunState::found;

  EXPECT_EQ(judge(running, Sight::alive, 1e6), Life::running);
  EXPECT_EQ(judge(running, Sight::gone, 0), Life::dead);
  EXPECT_EQ(judge(running, Sight::unknown, kDeadAfter), Life::running);
  EXPECT_EQ(judge(running, Sight::unknown, kDeadAfter + 1), Life::dead);
  EXPECT_EQ(judge(found, Sight::gone, 1e6), Life::finished);
}

TEST(DescribeStatus, BeginsWithTheAnswer) {
  RunStatus status{RunState::running, 0, "z1_gas1_tmbspg4", "", 3, 34.5, true};
  status.process = {"nodeA", 4711, 99, "pid:[1]", ""};

  EXPECT_EQ(describe(status, Life::running, 3),
            "running: 3 experiments in 34 s, best so far z1_gas1_tmbspg4; nodeA, process 4711, "
            "last heartbeat 3 s ago\n"
            "  runs now: no experiment, since the next one is being chosen");
  EXPECT_EQ(describe(status, Life::dead, 73),
            "dead: 3 experiments in 34 s, best so far z1_gas1_tmbspg4; nodeA, process 4711, last "
            "heartbeat 73 s ago; continue it with --resume");
  status.state = RunState::interrupted;
  status.exit_code = 4;
  status.message = "a signal ended the run";
  EXPECT_EQ(describe(status, Life::finished, 73),
            "finished: interrupted, exit code 4; 3 experiments in 34 s, best so far "
            "z1_gas1_tmbspg4; a signal ended the run");
}

}  // namespace
}  // namespace dstune::status_file_test
