#include "core/search/tuners/compare/simplicity.hpp"

#include <gtest/gtest.h>

namespace dstune::simplicity_test {
namespace {

Record record_of(int stage, json::object settings, Bytes memory = 0) {
  settings["stage"] = stage;
  Record record;
  record.experiment.ds_config = {{"zero_optimization", std::move(settings)}};
  Measured measured;
  measured.peak_memory.total = memory;
  record.outcome = measured;
  return record;
}

int departures(int stage, json::object settings) {
  return departures_from_defaults(record_of(stage, std::move(settings)).experiment);
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

}  // namespace
}  // namespace dstune::simplicity_test
