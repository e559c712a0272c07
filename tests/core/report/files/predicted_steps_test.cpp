#include "core/report/files/predicted_steps.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::predicted_steps_test {
namespace {

PredictedStep step(int stage, int micro_batch, Seconds time) {
  PredictedStep predicted{.step_time = time, .low = 0.9 * time, .high = 1.1 * time};
  predicted.experiment.name = "z" + std::to_string(stage) + "_" + std::to_string(micro_batch);
  predicted.experiment.ds_config = {{"train_micro_batch_size_per_gpu", micro_batch},
                                    {"zero_optimization", {{"stage", stage}}}};
  predicted.log_speed = std::log(micro_batch / time);
  return predicted;
}

TEST(PredictionsCsv, HasTheFastestFirstWithSettingsAndMeasurements) {
  auto slow = step(3, 1, 0.5);
  slow.measured = 0.25;

  EXPECT_EQ(
      predictions_csv({slow, step(1, 4, 1)}),
      "name,zero,micro batch,predicted_step_time_s,low_95_s,high_95_s,measured_step_time_s\r\n"
      "z1_4,1,4,1.0,0.9,1.1,\r\n"
      "z3_1,3,1,0.5,0.45,0.55,0.25\r\n");
}

// The best is 4 samples/s. Of stage 3 the best has 2, of micro-batch 1 the best has 3.99.
TEST(SettingsThatMatter, SaysWhatTheWorstValueLosesAtTheBestOfAllOthers) {
  const auto text =
      settings_that_matter({step(1, 4, 1), step(1, 1, 1 / 3.99), step(3, 4, 2), step(3, 1, 1)});

  EXPECT_EQ(text,
            "according to the final predictions, with the worst value and the best of all others: "
            "zero 3 loses 50 %; less than 1 %: micro batch");
}

TEST(SettingsThatMatter, ComparesStepsThatReadASetting) {
  auto without = step(3, 1, 0.5);
  without.experiment.ds_config = {{"train_micro_batch_size_per_gpu", 1},
                                  {"zero_optimization", {{"stage", 3}, {"overlap_comm", false}}}};
  auto with = step(3, 1, 0.4);
  with.experiment.ds_config = {{"train_micro_batch_size_per_gpu", 1},
                               {"zero_optimization", {{"stage", 3}, {"overlap_comm", true}}}};

  EXPECT_THAT(settings_that_matter({step(1, 1, 0.1), without, with}),
              testing::HasSubstr("overlap_comm false 20 %"));
}

TEST(SettingsThatMatter, SaysNothingOfOneConfiguration) {
  EXPECT_EQ(settings_that_matter({}), "");
  EXPECT_EQ(settings_that_matter({step(1, 1, 1)}), "");
}

}  // namespace
}  // namespace dstune::predicted_steps_test
