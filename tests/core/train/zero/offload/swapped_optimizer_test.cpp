// Stage 3 with the optimizer on a drive: steps that train as those with it in the host's memory do.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/zero/offload/nvme/swap_rules.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/ledger_sums.hpp"
#include "tests/support/skip_reason.hpp"
#include "tests/support/swapping.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tiny_experiment.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::swapped_optimizer_test {
namespace {

using test::config_of;
using test::run_training;
using test::skip_reason_of_stage_3;
using test::Split;
using test::TrainingRun;
using testing_support::TemporaryDirectory;

constexpr std::int64_t kLeastSwapped = 262'144;  // 1 MiB of fp32

/// About 2 million parameters: of three ranks each has two sub-groups of kLeastSwapped elements.
RunSettings settings_of_swapping() {
  RunSettings settings = test::tiny_settings();
  settings.model.hidden_size = 291;
  settings.model.inner_size = 1164;
  settings.model.num_heads = 3;
  return settings;
}

json::object ds_config_of(const Split& split, const std::string& offload, const char* precision) {
  json::object config = config_of(split, concat(R"({"sub_group_size": )", kLeastSwapped,
                                                R"(, "offload_optimizer": )", offload, "}"));
  if (precision != nullptr) config[precision] = {{"enabled", true}};
  return config;
}

TrainingRun train(const Split& split, const std::string& offload, const char* precision) {
  constexpr int kSteps = 3;
  return run_training(make_step_config(ds_config_of(split, offload, precision)), split.ranks,
                      kSteps, settings_of_swapping());
}

class TrainingWithSwappedOptimizer : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, TrainingWithSwappedOptimizer,
                         testing::Values(Split{3, 1, 1}, Split{3, 2, 3}, Split{3, 3, 1},
                                         Split{3, 4, 1}),
                         test::name_of_split);

// Nothing is computed in another way: the numbers are the same to the bit.
TEST_P(TrainingWithSwappedOptimizer, IsThatWithItInTheHostsMemory) {
  const TemporaryDirectory directory(std::filesystem::current_path());
  if (const std::string reason = test::why_no_swapping_here(directory.path()); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  std::vector<const char*> precisions = {"bf16"};
  if (GetParam().ranks == 1) precisions.push_back(nullptr);  // fp32
  for (const char* const precision : precisions) {
    const TrainingRun without = train(GetParam(), R"({"device": "cpu"})", precision);
    for (const char* pipeline :
         {"", R"(, "pipeline_read": true, "buffer_count": 8)",
          R"(, "pipeline_write": true, "buffer_count": 8)",
          R"(, "pipeline_read": true, "pipeline_write": true, "buffer_count": 12)"}) {
      SCOPED_TRACE(concat(precision == nullptr ? "fp32" : precision, pipeline));
      const std::string nvme =
          concat(R"({"device": "nvme", "nvme_path": ")", directory.path(), '"', pipeline, "}");
      test::expect_same(train(GetParam(), nvme, precision), without);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(SwapRules, SmallTensorsAndTailsStayWhereTheyAre) {
  const SwapRules rules({.intra_op_parallelism = 4});
  constexpr std::int64_t kUnit = 1024;  // elements: 1 KiB for each of four threads

  EXPECT_FALSE(rules.is_swapped(kLeastSwapped - 1));
  EXPECT_TRUE(rules.is_swapped(kLeastSwapped));
  EXPECT_EQ(rules.padded(kLeastSwapped + 1), kLeastSwapped + kUnit);
  EXPECT_EQ(rules.written(kLeastSwapped - 1), 0);
  EXPECT_EQ(rules.written(kLeastSwapped + kUnit - 1), kLeastSwapped);
  EXPECT_EQ(rules.written(kLeastSwapped + kUnit), kLeastSwapped + kUnit);
}

TEST(SwapRules, LargerBlocksSwapLess) {
  const SwapRules rules({.block_size = Bytes{4} << 20U});

  EXPECT_FALSE(rules.is_swapped(4 * kLeastSwapped - 1));
  EXPECT_TRUE(rules.is_swapped(4 * kLeastSwapped));
}

TEST(SwapRules, AGradientOfWhichTooLittleIsWholeStaysWhereItIs) {
  // A unit of 1.5 MiB: of 1 MiB nothing is a whole one.
  const SwapRules rules({.intra_op_parallelism = 1536});

  EXPECT_TRUE(rules.is_swapped(kLeastSwapped));
  EXPECT_EQ(rules.written(kLeastSwapped), 0);
}

std::string why_skipped(std::int64_t sub_group_size, const std::string& swapping) {
  test::TinyExperiment tiny{3, 1, 1, 1, DType::bf16, false};
  tiny.model = settings_of_swapping().model;
  tiny.zero["sub_group_size"] = sub_group_size;
  tiny.zero["offload_optimizer"] =
      parse_json(concat(R"({"device": "nvme", "nvme_path": "/tmp")", swapping, "}"));
  const Outcome outcome = dry_run(tiny.make(), 0).outcome;
  const auto* const skipped = std::get_if<Skipped>(&outcome);
  return skipped == nullptr ? "runs" : skipped->reason;
}

TEST(ConfigurationsOfSwapping, WithTooFewBuffersAreSkipped) {
  constexpr std::int64_t kWhole = 1'000'000'000;
  const auto needs = [](int has, int needed) {
    return concat("not modelled: zero_optimization.offload_optimizer.buffer_count ", has,
                  " where DeepSpeed needs ", needed, " or crashes");
  };
  EXPECT_EQ(why_skipped(kWhole, R"(, "buffer_count": 3)"), needs(3, 4));
  EXPECT_EQ(swap_buffers_needed({}, 0), 1) << "DeepSpeed looks at the first one";
  EXPECT_EQ(why_skipped(kWhole, R"(, "pipeline_read": true, "pipeline_write": true)"), "runs");
  EXPECT_EQ(why_skipped(kLeastSwapped, ""), "runs");
  EXPECT_EQ(why_skipped(kLeastSwapped, R"(, "pipeline_read": true)"), needs(4, 8));
  EXPECT_EQ(why_skipped(kLeastSwapped, R"(, "pipeline_write": true, "buffer_count": 8)"), "runs");
  EXPECT_EQ(why_skipped(kLeastSwapped,
                        R"(, "pipeline_read": true, "pipeline_write": true, "buffer_count": 11)"),
            needs(11, 12));
}

TEST(ConfigurationsOfSwapping, ThatTheStepDoesNotHaveAreSkippedByName) {
  const std::string named = "not modelled: zero_optimization.offload_optimizer";
  EXPECT_EQ(
      skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "nvme", "nvme_path": "/tmp"}})"),
      "runs");
  EXPECT_EQ(skip_reason_of_stage_3(
                R"({"offload_optimizer": {"device": "nvme", "nvme_path": "/tmp", "ratio": 0.5}})"),
            named + ".ratio below 1 with device nvme");
  EXPECT_EQ(
      skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "nvme", "nvme_path": "/tmp"}})",
                             R"({"aio": {"block_size": 1000000}})"),
      "not modelled: aio.block_size that is not a multiple of 4096");
  const std::string most = std::to_string((std::int64_t{1} << 31) - 4096);
  const std::string more = std::to_string(std::int64_t{1} << 31);
  for (const auto& [block_size, reason] :
       {std::pair{most, "runs"}, {more, "not modelled: aio.block_size above 2 GiB - 4096"}}) {
    EXPECT_EQ(
        skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "nvme", "nvme_path": "/tmp"}})",
                               concat(R"({"aio": {"block_size": )", block_size, "}}").c_str()),
        reason);
  }
  EXPECT_EQ(
      skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "nvme", "nvme_path": "/tmp"}})",
                             R"({"aio": {"use_gds": true}})"),
      "not modelled: aio.use_gds");
}

}  // namespace
}  // namespace dstune::swapped_optimizer_test
