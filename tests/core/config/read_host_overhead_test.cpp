#include "core/config/read_host_overhead.hpp"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune {
namespace {

using testing_support::Faults;
using testing_support::faults_in;
using testing_support::write_file;

class ReadHostOverhead : public testing::Test {
 protected:
  std::optional<HostOverhead> read(const std::string& name) {
    return read_host_overhead(name, {"/nowhere", folder_.path()}, "/dstune/host_overhead",
                              problems_);
  }
  void write(const char* name, const char* text) { write_file(folder_ / name, text); }
  Faults faults() { return faults_in(problems_); }

  testing_support::TemporaryDirectory folder_;
  Problems problems_{"config.json"};
};

constexpr const char* kProfile = R"({
  "gradient_hook_us": 55.5, "module_hook_us": 0, "collective_us": 30, "optimizer_tensor_us": 70,
  "synchronization_us": 12, "about": {"made_by": "scripts/calibrate_host_overhead.py"}
})";

TEST_F(ReadHostOverhead, KnowsItsPresets) {
  EXPECT_EQ(read("none"), HostOverhead{});
  EXPECT_EQ(read("cpu-gloo"), host_overhead_preset("cpu-gloo"));
  EXPECT_EQ(faults(), Faults{});
}

TEST_F(ReadHostOverhead, LeavesTheDefaultToTheBackend) {
  EXPECT_EQ(read("default"), std::nullopt);
  EXPECT_EQ(faults(), Faults{});
}

TEST_F(ReadHostOverhead, ReadsTheMicrosecondsOfAProfile) {
  write("mine.json", kProfile);

  const auto overhead = read("mine.json");

  ASSERT_TRUE(overhead) << faults().size();
  EXPECT_DOUBLE_EQ(overhead->at(HostEvent::gradient_hook), 55.5e-6);
  EXPECT_EQ(overhead->at(HostEvent::module_hook), 0);
  EXPECT_DOUBLE_EQ(overhead->at(HostEvent::synchronization), 12e-6);
}

TEST_F(ReadHostOverhead, SaysWhatItKnowsOfAnUnknownName) {
  EXPECT_EQ(read("defualt"), std::nullopt);
  EXPECT_EQ(faults(), Faults{"/dstune/host_overhead  is \"defualt\", no preset and no file; did "
                             "you mean \"default\"? accepted: \"default\", \"gpu-estimate\", "
                             "\"cpu-gloo\", \"none\", or the path of a profile"});
}

TEST_F(ReadHostOverhead, ReportsEveryFaultOfAProfile) {
  write("bad.json", R"({"gradient_hook_us": -1, "module_hook": 3, "module_hook_us": "fast",
                        "collective_us": 1, "optimizer_tensor_us": 1})");

  EXPECT_EQ(read("bad.json"), std::nullopt);
  const std::string file = folder_ / "bad.json";
  EXPECT_EQ(faults(),
            (Faults{file + "#/gradient_hook_us  is -1; accepted: a number from 0 to 100000",
                    file + "#/module_hook  is unknown; did you mean \"module_hook_us\"?",
                    file + "#/module_hook_us  is \"fast\"; accepted: a number from 0 to 100000",
                    file + "#/synchronization_us  is missing; accepted: a number of microseconds "
                           ">= 0"}));
}

TEST_F(ReadHostOverhead, RejectsAFileWithoutAnObject) {
  write("list.json", "[1, 2]");

  EXPECT_EQ(read("list.json"), std::nullopt);
  EXPECT_EQ(faults().size(), 1U);
}

}  // namespace
}  // namespace dstune
