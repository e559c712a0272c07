// The formulas of memory_model.hpp beside what steps on the CPU really allocate.
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/oracle/memory_model.hpp"
#include "tests/support/predicted_memory.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::memory_of_real_steps_test {
namespace {

using test::TinyExperiment;
using test::TrainingRank;

/// Two steps on the CPU: peaks, and what is left after them.
void check_real(const TinyExperiment& tiny) {
  const Experiment experiment = tiny.make();
  const StepConfig config = experiment.ds_config.step();
  const auto parameters = make_model_parameters(experiment.settings.model);
  const auto check_rank = [&](TrainingRank& own) {
    for (int i = 0; i < 2; ++i) own.step.run();

    const std::string what = concat(tiny.name(), ", rank ", own.rank);
    test::expect_equal(own.device.memory().peak().categories,
                       test::predict_peak(experiment, own.rank, &own.device), what);
    MemoryUse left =
        oracle::predict_model_states(config, parameters, tiny.ranks, own.rank).resident;
    left.at(MemoryCategory::activations) = 8 * 2 * 5;  // the tokens
    test::expect_equal(own.device.memory().use(), left, what);
  };
  test::on_training_ranks(config, tiny.ranks, check_rank, experiment.settings);
}

class RealSteps : public testing::TestWithParam<int> {};

TEST(RealShardedSteps, PeaksOnTheCpuAreTheWalksAndLedgersThoseOfADryRun) {
  for (const json::object& zero : test::stage3_knobs()) {
    const TinyExperiment tiny{3, 2, 2, 2, DType::bf16, true, zero};
    if (!test::shard_sizes_divide(tiny)) continue;
    const Experiment experiment = tiny.make();
    const StepConfig config = experiment.ds_config.step();
    const auto check_rank = [&](TrainingRank& own) {
      for (int i = 0; i < 3; ++i) own.step.run();

      test::expect_equal(own.device.memory().peak().categories,
                         test::predict_peak(experiment, own.rank, &own.device), tiny.name());
      const auto dry = std::get<Measured>(dry_run(experiment, own.rank, &own.device).outcome);
      EXPECT_TRUE(own.device.ledger().same_work(dry.ledger)) << tiny.name();
    };
    test::on_training_ranks(config, 2, check_rank, experiment.settings);
  }
}

TEST_P(RealSteps, PeaksAndResidentBytesOnTheCpuAreTheFormulas) {
  for (const int ranks : {1, 2, 3}) {
    for (const DType dtype : {DType::fp32, DType::fp16}) {
      check_real({GetParam(), ranks, 2, 2, dtype, ranks == 2, {{"reduce_bucket_size", 100}}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, RealSteps, testing::Values(0, 1, 2, 3));

TEST(RealStepsWithGradientKnobs, PeaksAndResidentBytesOnTheCpuAreTheFormulas) {
  const json::object sums = {{"data_types", {{"grad_accum_dtype", "fp32"}}}};
  const json::object in_fp32 = {{"communication_data_type", "fp32"}};
  const json::object list = {{"contiguous_gradients", false}, {"reduce_bucket_size", 100}};
  const json::object late = {{"overlap_comm", false}, {"reduce_bucket_size", 100}};

  for (const int ranks : {1, 3}) {
    check_real({1, ranks, 2, 2, DType::bf16, true, {}, test::tiny_model(), sums});
    check_real({1, ranks, 2, 2, DType::fp16, false, late, test::tiny_model(), sums});
    check_real({2, ranks, 2, 2, DType::bf16, true, list, test::tiny_model(), in_fp32});
    check_real({0, ranks, 2, 2, DType::fp16, true, {}, test::tiny_model(), in_fp32});
  }
}

}  // namespace
}  // namespace dstune::memory_of_real_steps_test
