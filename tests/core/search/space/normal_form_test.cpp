#include "core/search/space/normal_form.hpp"

#include <random>
#include <variant>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/search/space/effect.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::normal_form_test {
namespace {

using test::tiny_model;
using test::TinyExperiment;

constexpr int kRanks = 3;

/// Knobs of zero_optimization with values, some beyond what the tiny model (910 elements) notices.
const json::object kKnobs = {
    {"contiguous_gradients", {true, false}},
    {"reduce_scatter", {true, false}},
    {"overlap_comm", {true, false}},
    {"round_robin_gradients", {true, false}},
    {"use_multi_rank_bucket_allreduce", {true, false}},
    {"stage3_use_all_reduce_for_fetch_params", {true, false}},
    {"stage3_allgather_sequential", {true, false}},
    {"reduce_bucket_size", {100, 300, 5000, 6000}},
    {"sub_group_size", {0, 1, 100, 5000, 6000}},
    {"stage3_prefetch_bucket_size", {0, 50, 200, 1000, 9000}},
    {"stage3_param_persistence_threshold", {0, 5, 11, 12, 8000}},
    {"stage3_model_persistence_threshold", {20, 40, 910, 5000}},
    {"stage3_max_live_parameters", {0, 100, 300, 600, 1500, 9000, 20000}},
    {"stage3_max_reuse_distance", {0, 100, 1000, 3000, 200000, 300000}},
};

class RandomConfig {
 public:
  explicit RandomConfig(std::uint32_t seed) : random_(seed) {}

  TinyExperiment next(int stage) {
    TinyExperiment tiny;
    tiny.stage = stage;
    tiny.ranks = kRanks;
    tiny.accumulation_steps = 2;
    tiny.dtype = pick<DType>({DType::fp32, DType::bf16, DType::fp16});
    tiny.client = coin();
    for (std::size_t i = 0; i < kKnobs.size() / 2; ++i) change_a_knob(tiny);
    tiny.root["gradient_clipping"] = pick<double>({0.0, 0.5, 1.0});
    if (tiny.dtype == DType::bf16) tiny.root["bf16"] = {{"check_grad_overflow", coin()}};
    if (coin()) tiny.root["communication_data_type"] = pick<const char*>({"fp32", "bf16", "fp16"});
    if (stage > 0 && coin()) tiny.root["data_types"] = {{"grad_accum_dtype", "fp32"}};
    return tiny;
  }

  void change_a_knob(TinyExperiment& tiny) {
    const auto knob = kKnobs.begin() + static_cast<std::ptrdiff_t>(random_() % kKnobs.size());
    const json::array& values = knob->value().get_array();
    tiny.zero[knob->key()] = values[random_() % values.size()];
  }

 private:
  bool coin() { return random_() % 2 == 0; }
  template <class Value>
  Value pick(std::initializer_list<Value> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
  }

  std::mt19937 random_;
};

/// The oracle: everything that a dry run does on the ranks that are looked at.
std::string effect_of(Experiment experiment) {
  experiment.settings.memory_limit = kUnlimited;
  const Effect effect =
      find_effect(experiment, ranks_to_look_at(experiment.ranks), make_dry_runner());
  return effect.skipped.empty() ? concat(effect.number) : effect.skipped;
}

class NormalForms : public testing::TestWithParam<int> {};

// Neighbours that differ in one knob: where their forms are equal, so are their steps.
TEST_P(NormalForms, AreEqualForEqualStepsOnly) {
  constexpr int kConfigurations = 600;
  const NormalForm form(make_model_parameters(tiny_model()), kRanks);
  RandomConfig random(20261122);
  int alike = 0;
  for (int i = 0; i < kConfigurations; ++i) {
    TinyExperiment tiny = random.next(GetParam());
    const Experiment experiment = tiny.make();
    random.change_a_knob(tiny);
    const Experiment neighbour = tiny.make();
    const StepConfig step = make_step_config(experiment);
    const StepConfig other = make_step_config(neighbour);
    if (!step.unsupported.empty() || !other.unsupported.empty()) continue;
    if (experiment.ds_config == neighbour.ds_config || form.key(step) != form.key(other)) continue;

    ++alike;
    ASSERT_EQ(effect_of(experiment), effect_of(neighbour))
        << to_json_text(experiment.ds_config, 0) << '\n'
        << to_json_text(neighbour.ds_config, 0);
  }
  EXPECT_GT(alike, kConfigurations / 10);
}

INSTANTIATE_TEST_SUITE_P(Stages, NormalForms, testing::Values(0, 1, 2, 3));

/// Whether `zero` and `other` have one form.
bool alike(int stage, const json::object& zero, const json::object& other) {
  const NormalForm form(make_model_parameters(tiny_model()), kRanks);
  const auto key = [&](const json::object& keys) {
    TinyExperiment tiny;
    tiny.stage = stage;
    tiny.ranks = kRanks;
    tiny.zero = keys;
    return form.key(make_step_config(tiny.make()));
  };
  return key(zero) == key(other);
}

TEST(NormalForm, StageZeroReadsNoKnobOfZero) {
  EXPECT_TRUE(alike(0, {},
                    {{"overlap_comm", true},
                     {"reduce_bucket_size", 5},
                     {"stage3_prefetch_bucket_size", 7},
                     {"contiguous_gradients", false}}));
}

TEST(NormalForm, KnobsOfStageThreeDoNothingBelowIt) {
  const json::object knobs = {{"stage3_prefetch_bucket_size", 7},
                              {"stage3_max_live_parameters", 7},
                              {"zero_quantized_weights", true},
                              {"zero_hpz_partition_size", 3}};

  EXPECT_TRUE(alike(1, {}, knobs));
  EXPECT_TRUE(alike(2, {}, knobs));
  EXPECT_FALSE(alike(3, {}, knobs));
}

TEST(NormalForm, WithoutContiguityNothingIsScattered) {
  const json::object list = {{"contiguous_gradients", false}};
  const json::object reduced = {{"contiguous_gradients", false}, {"reduce_scatter", false}};

  EXPECT_TRUE(alike(2, list, reduced));
  EXPECT_FALSE(alike(2, {}, {{"reduce_scatter", false}}));
}

TEST(NormalForm, LimitsEndAtTheModel) {
  const auto both = [](const char* key, std::int64_t size, std::int64_t other) {
    return alike(3, {{key, size}}, {{key, other}});
  };

  EXPECT_TRUE(both("stage3_prefetch_bucket_size", 5000, 9000));
  EXPECT_FALSE(both("stage3_prefetch_bucket_size", 500, 9000));
  EXPECT_TRUE(both("stage3_max_live_parameters", 1'000'000, 2'000'000));
  EXPECT_TRUE(both("stage3_max_reuse_distance", 1'000'000, 2'000'000));
  EXPECT_TRUE(both("sub_group_size", 5000, 9000));
  EXPECT_TRUE(both("sub_group_size", 0, 1));
  EXPECT_TRUE(both("stage3_param_persistence_threshold", 1'000'000, 2'000'000));
  EXPECT_TRUE(both("stage3_model_persistence_threshold", 5000, 9000));
  EXPECT_FALSE(both("reduce_bucket_size", 5000, 9000)) << "memory";
}

TEST(NormalForm, WithoutPrefetchThereIsNoLimitOfWhatIsLive) {
  EXPECT_TRUE(alike(3, {{"stage3_prefetch_bucket_size", 0}, {"stage3_max_live_parameters", 5}},
                    {{"stage3_prefetch_bucket_size", 0}, {"stage3_max_live_parameters", 500}}));
}

}  // namespace
}  // namespace dstune::normal_form_test
