// Stage 3 with parameters on a drive: steps that train as those with them in the host's memory do.
#include <cstdint>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/experiment/step_refused.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/swapping.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::swapped_parameters_test {
namespace {

using test::Split;
using test::TrainingRun;
using testing_support::TemporaryDirectory;

/// Each of two ranks has more than 1 MiB in 16 bits of each matrix of the feed-forward blocks.
RunSettings settings_of_swapping(std::int64_t layers = 1) {
  RunSettings settings = test::tiny_settings();
  settings.model.hidden_size = 516;
  settings.model.inner_size = 2064;
  settings.model.num_heads = 3;
  settings.model.num_layers = layers;
  return settings;
}

class TrainingWithSwappedParameters : public testing::TestWithParam<Split> {
 protected:
  void SetUp() override {
    const std::string reason = test::why_no_swapping_here(directory_.path());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override { EXPECT_TRUE(std::filesystem::is_empty(directory_.path())); }

  /// Two steps in bf16 with these keys of zero_optimization, where $ is the drive's directory.
  TrainingRun train(std::string zero, const RunSettings& settings = settings_of_swapping()) {
    constexpr int kSteps = 2;
    for (std::size_t at = zero.find('$'); at != std::string::npos; at = zero.find('$')) {
      zero.replace(at, 1, directory_.path());
    }
    json::object config = test::config_of(GetParam(), concat("{", kOnlyWhatIsUsed, zero, "}"));
    config["bf16"] = {{"enabled", true}};
    return test::run_training(make_step_config(config), GetParam().ranks, kSteps, settings);
  }

  static constexpr const char* kOnlyWhatIsUsed =
      R"("stage3_max_reuse_distance": 0, "sub_group_size": 600000, )";
  static constexpr const char* kNothingAhead = R"(, "stage3_prefetch_bucket_size": 0)";
  static constexpr const char* kInMemory = R"("offload_param": {"device": "cpu"})";
  static constexpr const char* kOnDrive =
      R"("offload_param": {"device": "nvme", "nvme_path": "$", "buffer_count": 8,
                           "buffer_size": 1400000, "max_in_cpu": )";

 private:
  TemporaryDirectory directory_{std::filesystem::current_path()};
};

INSTANTIATE_TEST_SUITE_P(Splits, TrainingWithSwappedParameters,
                         testing::Values(Split{3, 1, 2}, Split{3, 2, 3}), test::name_of_split);

// Nothing is computed in another way: the numbers are the same to the bit.
TEST_P(TrainingWithSwappedParameters, IsThatWithThemInTheHostsMemory) {
  const TrainingRun expected = train(concat(kInMemory, kNothingAhead));
  for (const char* in_memory : {"0", "700000", "1000000000"}) {
    SCOPED_TRACE(in_memory);
    test::expect_same(train(concat(kOnDrive, in_memory, "}", kNothingAhead)), expected);
  }
}

TEST_P(TrainingWithSwappedParameters, IsTheSameWithTensorsThatStayGathered) {
  const std::string stay =
      concat(kNothingAhead, R"(, "stage3_param_persistence_threshold": 2000000)");
  test::expect_same(train(concat(kOnDrive, "0}", stay)), train(kInMemory + stay));
}

TEST_P(TrainingWithSwappedParameters, IsTheSameWithTheOptimizerThereOrInTheHostsMemory) {
  const TrainingRun expected =
      train(concat(kInMemory, kNothingAhead, R"(, "offload_optimizer": {"device": "cpu"})"));
  for (const char* optimizer :
       {R"({"device": "cpu"})", R"({"device": "nvme", "nvme_path": "$"})",
        R"({"device": "nvme", "nvme_path": "$", "fast_init": true})",
        R"({"device": "nvme", "nvme_path": "$", "pipeline_read": true, "pipeline_write": true,
            "buffer_count": 12, "fast_init": true})"}) {
    SCOPED_TRACE(optimizer);
    test::expect_same(
        train(concat(kOnDrive, "600000}", kNothingAhead, R"(, "offload_optimizer": )", optimizer)),
        expected);
  }
}

TEST_P(TrainingWithSwappedParameters, IsTheSameWhereTheyAreReadAhead) {
  const std::string ahead = R"("offload_param": {"device": "nvme", "nvme_path": "$",
      "buffer_count": 4, "buffer_size": 1400000, "max_in_cpu": 0},
      "stage3_prefetch_bucket_size": 3000000)";
  const RunSettings settings = settings_of_swapping(2);
  test::expect_same(
      train(ahead, settings),
      train(concat(kInMemory, R"(, "stage3_prefetch_bucket_size": 3000000)"), settings));
}

// What stays gathered is read ahead too, in vain, and must not be in its buffer after the update.
TEST_P(TrainingWithSwappedParameters, IsTheSameWhereTensorsThatStayGatheredAreReadAhead) {
  const std::string stay = R"(, "stage3_prefetch_bucket_size": 500000,
      "stage3_param_persistence_threshold": 2000000)";
  const std::string ahead = R"("offload_param": {"device": "nvme", "nvme_path": "$",
      "buffer_count": 8, "buffer_size": 1400000, "max_in_cpu": 0})";
  const RunSettings settings = settings_of_swapping(2);
  if (GetParam().ranks > 1) {
    EXPECT_THROW(train(ahead + stay, settings), StepRefused) << "it reads a tensor ahead twice";
    return;
  }
  test::expect_same(train(ahead + stay, settings), train(kInMemory + stay, settings));
}

// Frozen shards are on the drive too, and nothing writes them again.
TEST_P(TrainingWithSwappedParameters, IsTheSameWhereAPartIsFrozen) {
  RunSettings settings = settings_of_swapping(2);
  settings.model.fine_tuning.trainable = {"transformer.h.1.*"};
  test::expect_same(train(concat(kOnDrive, "0}", kNothingAhead), settings),
                    train(concat(kInMemory, kNothingAhead), settings));
}

}  // namespace
}  // namespace dstune::swapped_parameters_test
