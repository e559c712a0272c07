// Events order everything that the streams of a step do to each other's memory, with every knob.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/train/training_step.hpp"
#include "tests/support/checking_device.hpp"
#include "tests/support/even_model.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/tiny_experiment.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::streams_test {
namespace {

using test::all_splits;
using test::CheckingCollectives;
using test::CheckingDevice;
using test::config_of;
using test::knobs_of;
using test::Split;
using test::stage_3_knobs;
using test::TinyExperiment;

constexpr int kSteps = 3;

/// What races in `kSteps` steps of rank 0; the timer's waits, which order everything, are off.
std::set<std::string> races_of(StepConfig step_config, const RunSettings& settings, int ranks) {
  step_config.timer_synchronizes = false;
  CheckingDevice device(settings.memory_limit);
  CheckingCollectives collectives(device, 0, ranks);
  {
    TrainingStep step(settings, step_config, device, collectives);
    for (int i = 0; i < kSteps; ++i) step.run();
  }
  return {device.races().begin(), device.races().end()};
}

void expect_order(const json::object& config, int ranks) {
  for (const bool overlaps : {false, true}) {
    json::object both = config;
    both["zero_optimization"].as_object()["overlap_comm"] = overlaps;
    const auto races = races_of(make_step_config(both), test::tiny_settings(), ranks);
    EXPECT_EQ(races, std::set<std::string>{}) << serialize(both);
  }
}

json::object in(const char* precision, json::object config) {
  config[precision] = {{"enabled", true}};
  return config;
}

class StreamsTest : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, StreamsTest, testing::ValuesIn(all_splits()), test::name_of_split);

TEST_P(StreamsTest, NothingRacesInAnyPrecision) {
  const json::object config = config_of(GetParam());
  expect_order(config, GetParam().ranks);
  for (const char* precision : {"bf16", "fp16"}) {
    json::object narrow = in(precision, config);
    expect_order(narrow, GetParam().ranks);
    narrow["communication_data_type"] = "fp32";
    expect_order(narrow, GetParam().ranks);
    narrow["data_types"] = {{"grad_accum_dtype", "fp32"}};
    expect_order(narrow, GetParam().ranks);
  }
}

TEST_P(StreamsTest, NothingRacesWithAnyKnob) {
  for (const char* keys : knobs_of(GetParam())) {
    expect_order(config_of(GetParam(), keys), GetParam().ranks);
  }
}

class GatherStreamsTest : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, GatherStreamsTest, testing::ValuesIn(test::sharded_splits()),
                         test::name_of_split);

TEST_P(GatherStreamsTest, NothingRacesHoweverParametersAreGathered) {
  for (const char* keys : stage_3_knobs()) {
    expect_order(config_of(GetParam(), keys), GetParam().ranks);
  }
  for (const char* part : {"zero_hpz_partition_size", "mics_shard_size"}) {
    json::object config = config_of(GetParam(), R"({"stage3_param_persistence_threshold": 12,
        "stage3_prefetch_bucket_size": 700, "stage3_max_reuse_distance": 0})");
    if (GetParam().ranks % 2 != 0) continue;
    config["zero_optimization"].as_object()[part] = 2;
    expect_order(config, GetParam().ranks);
  }
}

TEST(QuantisedStreamsTest, NothingRacesOnTwoNodes) {
  constexpr int kRanks = 6;
  for (const bool overlaps : {false, true}) {
    for (const char* keys : {R"({"zero_quantized_weights": true})",
                             R"({"zero_quantized_weights": true, "zero_hpz_partition_size": 3})",
                             R"({"zero_quantized_gradients": true})"}) {
      json::object zero = parse_json(keys).as_object();
      zero["overlap_comm"] = overlaps;
      zero["reduce_bucket_size"] = 6000;
      zero["stage3_param_persistence_threshold"] = 48;
      zero["stage3_prefetch_bucket_size"] = 3000;
      zero["stage3_max_reuse_distance"] = 0;
      TinyExperiment tiny{3, kRanks, 1, 2, DType::fp16, true, zero, test::even_model()};
      tiny.devices_per_node = 3;
      const Experiment experiment = tiny.make();
      EXPECT_EQ(races_of(make_step_config(experiment), experiment.settings, kRanks),
                std::set<std::string>{})
          << keys;
    }
  }
}

}  // namespace
}  // namespace dstune::streams_test
