#include "core/search/tuners/compare/tie_rule.hpp"

#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::tie_rule_test {
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
  unusual.experiment.ds_config.set("zero_optimization",
                                   {{"stage", 1}, {"contiguous_gradients", false}});
  EXPECT_EQ(reason({record(1, 9), unusual}),
            "as fast as z1_cgF within noise, and nearer to DeepSpeed's defaults");
}

TEST(ChoiceReason, IsTheOrderOfTheSearchWhereNothingElseDiffers) {
  Record later = record(1, 9.1);
  later.experiment.name = "z1_later";
  later.experiment.ds_config.set("train_batch_size", 8);
  later.finished = 10;

  EXPECT_EQ(reason({record(1, 9), later}),
            "as fast as z1_later within noise, and measured before it");
}

Record record_of(int stage, json::object settings, Bytes memory = 0) {
  settings["stage"] = stage;
  Record record;
  record.experiment.ds_config = {{"zero_optimization", std::move(settings)}};
  Measured measured;
  measured.peak_memory.allocated = memory;
  record.outcome = measured;
  return record;
}

int departures(int stage, json::object settings) {
  return departures_from_defaults(
      record_of(stage, std::move(settings)).experiment.ds_config.step());
}

TEST(Departures, AreSettingsOtherThanDeepSpeedsOfThoseThatTheStageReads) {
  EXPECT_EQ(departures(2, {}), 0);
  EXPECT_EQ(departures(2, {{"contiguous_gradients", true}, {"reduce_bucket_size", 5e8}}), 0);
  EXPECT_EQ(departures(2, {{"contiguous_gradients", false}, {"reduce_bucket_size", 5e7}}), 2);
  EXPECT_EQ(departures(0, {{"contiguous_gradients", false}}), 0);
  EXPECT_EQ(departures(2, {{"stage3_max_live_parameters", 0}}), 0);
  EXPECT_EQ(departures(3, {{"stage3_max_live_parameters", 0}}), 1);
  EXPECT_EQ(departures(2, {{"leaf_module", {{"names", {"h"}}}}}), 0);
  EXPECT_EQ(departures(3, {{"leaf_module", {{"names", {"h"}}}}}), 1);
}

TEST(Departures, KnowThatOverlapIsTheDefaultOfStage3Alone) {
  EXPECT_EQ(departures(3, {{"overlap_comm", true}}), 0);
  EXPECT_EQ(departures(2, {{"overlap_comm", true}}), 1);
}

TEST(Simplicity, IsStageThenDeparturesThenTimeThenMemory) {
  const Record small = record_of(2, {}, 1);
  const Record large = record_of(2, {}, 2);
  const Record unusual = record_of(2, {{"overlap_comm", true}}, 1);
  const Record smaller_stage = record_of(1, {{"overlap_comm", true}}, 3);

  EXPECT_LT(simplicity_of(smaller_stage, 2), simplicity_of(small, 1));
  EXPECT_LT(simplicity_of(large, 2), simplicity_of(unusual, 1));
  EXPECT_LT(simplicity_of(large, 1), simplicity_of(small, 2));
  EXPECT_LT(simplicity_of(small, 1), simplicity_of(large, 1));
}

Record equally_fast(const std::string& name, int stage, json::object settings, Bytes memory) {
  Record record = record_of(stage, std::move(settings), memory);
  record.experiment.name = name;
  std::get<Measured>(record.outcome).samples_per_s = 8;
  return record;
}

// The best last, so that neither the order nor the alphabet is what decides.
TEST(BetterChoice, OfExactTiesIsTheStageThenDeepSpeedsDefaultsThenMemoryWhateverTheNames) {
  const std::vector<Record> worse_first = {
      equally_fast("a", 2, {}, 1), equally_fast("b", 1, {{"overlap_comm", true}}, 1),
      equally_fast("c", 1, {}, 3), equally_fast("d", 1, {}, 2)};

  for (std::size_t i = 0; i < worse_first.size(); ++i) {
    for (std::size_t j = 0; j < worse_first.size(); ++j) {
      EXPECT_EQ(is_better_choice(Metric::throughput, worse_first[j], worse_first[i]), j > i)
          << worse_first[j].experiment.name << " against " << worse_first[i].experiment.name;
    }
  }
}

TEST(BetterChoice, IsTheFasterHoweverSlightly) {
  Record faster = equally_fast("a", 3, {{"overlap_comm", false}}, 9);
  std::get<Measured>(faster.outcome).samples_per_s = 8.0000001;

  EXPECT_TRUE(is_better_choice(Metric::throughput, faster, equally_fast("b", 0, {}, 1)));
  EXPECT_FALSE(is_better_choice(Metric::throughput, equally_fast("b", 0, {}, 1), faster));
}

}  // namespace
}  // namespace dstune::tie_rule_test
