#include "core/report/status_file.hpp"

#include <gtest/gtest.h>

#include "core/base/file.hpp"
#include "core/base/json_parser.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune {
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

}  // namespace
}  // namespace dstune
