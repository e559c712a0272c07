#include "core/search/tuners/compare/choice_reason.hpp"

#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::choice_reason_test {
namespace {

Record record(int stage, double samples_per_s, int repetition = 0) {
  Record record = testing_support::make_record(testing_support::make_experiment(stage, 1),
                                               testing_support::make_measured(samples_per_s));
  record.experiment.repetition = repetition;
  return record;
}

std::string reason(const std::vector<Record>& records) {
  return choice_reason(records, Metric::throughput, records.front());
}

TEST(ChoiceReason, IsSpeedWhereNothingIsFaster) {
  EXPECT_EQ(reason({record(1, 9), record(2, 8)}), kFastest);
  EXPECT_EQ(reason({record(1, 9), record(2, 8), record(1, 8, 1), record(2, 7, 1)}), kFastest);
}

TEST(ChoiceReason, IsSpeedWhenRepeatedWhereAnothersFirstNumberIsBetter) {
  EXPECT_EQ(reason({record(1, 9), record(2, 9.1), record(1, 9, 1), record(2, 8, 1)}),
            "the fastest when repeated");
}

TEST(ChoiceReason, IsWhatTheTieRuleFoundBetter) {
  EXPECT_EQ(reason({record(1, 9), record(2, 9.1)}),
            "as fast as z2_gas1_tmbspg1 within noise, and a smaller stage");
  Record unusual = record(1, 9.1);
  unusual.experiment.name = "z1_cgF";
  unusual.experiment.ds_config["zero_optimization"] = {{"stage", 1},
                                                       {"contiguous_gradients", false}};
  EXPECT_EQ(reason({record(1, 9), unusual}),
            "as fast as z1_cgF within noise, and nearer to DeepSpeed's defaults");
}

TEST(ChoiceReason, IsTheOrderOfTheSearchWhereNothingElseDiffers) {
  Record later = record(1, 9.1);
  later.experiment.name = "z1_later";
  later.experiment.ds_config["train_batch_size"] = 8;
  later.finished = 10;

  EXPECT_EQ(reason({record(1, 9), later}),
            "as fast as z1_later within noise, and measured before it");
}

}  // namespace
}  // namespace dstune::choice_reason_test
