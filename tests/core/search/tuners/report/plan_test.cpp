#include "core/search/tuners/report/plan.hpp"

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::plan_test {
namespace {

using testing_support::TemporaryDirectory;

constexpr Bytes kMiB = Bytes{1} << 20U;

/// Of a small file on a machine with a GPU of 64 MiB.
class MakePlanTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.config_path = directory_ / "config.json";
    options_.results_dir = directory_ / "results";
    options_.world_size = 1;
    write_file_atomically(options_.config_path, R"({
      "zero_optimization": { "stage": [0] },
      "dstune": {
        "model": { "model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1 },
        "backend": "cuda", "sequence_length": 8, "tuner": "fast", "objective": { "memory_headroom": "4MiB" }
      }
    })");
  }

  Plan plan() {
    DeviceInfo gpu{"cuda", "Some GPU", 64 * kMiB, 64 * kMiB, false, ""};
    gpu.limit_is_free_memory = true;
    return make_plan(options_, {{gpu},
                                [](const std::string&) { return std::unique_ptr<Backend>(); },
                                [&](const std::string&, const Placement&) {
                                  ++asked_;
                                  return gpu;
                                }});
  }

  TemporaryDirectory directory_;
  CommandLine options_;
  int asked_ = 0;
};

TEST_F(MakePlanTest, TakesTheMemoryOfTheGpuHere) {
  const Plan found = plan();

  EXPECT_EQ(found.machine.memory_limit, 64 * kMiB);
  EXPECT_EQ(found.machine.memory_limit_origin, "64.00 MiB free on Some GPU of this machine");
  EXPECT_EQ(found.config.settings.memory_limit, 60 * kMiB) << "less the headroom";
  EXPECT_EQ(asked_, 1);
}

TEST_F(MakePlanTest, AsksNoGpuWhereTheUserSetsALimit) {
  options_.memory_limit = 128 * kMiB;

  const Plan found = plan();

  EXPECT_EQ(found.machine.memory_limit, 128 * kMiB);
  EXPECT_EQ(found.machine.memory_limit_origin, "");
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace dstune::plan_test
