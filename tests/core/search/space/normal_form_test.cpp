#include "core/search/space/normal_form.hpp"

#include <map>
#include <random>
#include <variant>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/search/space/effect.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune {
namespace {

using test::tiny_model;
using test::TinyExperiment;

constexpr int kRanks = 3;

/// Values of knobs, some of them beyond what the tiny model (4,248 elements) can notice.
class RandomConfig {
 public:
  explicit RandomConfig(std::uint32_t seed) : random_(seed) {}

  Experiment next(int stage) {
    TinyExperiment tiny;
    tiny.stage = stage;
    tiny.ranks = kRanks;
    tiny.accumulation_steps = 2;
    tiny.dtype = pick<DType>({DType::fp32, DType::bf16, DType::fp16});
    tiny.client = pick<bool>({true, false});
    for (const char* key :
         {"contiguous_gradients", "reduce_scatter", "overlap_comm", "round_robin_gradients",
          "use_multi_rank_bucket_allreduce", "stage3_use_all_reduce_for_fetch_params"}) {
      if (coin()) tiny.zero[key] = coin();
    }
    if (coin()) tiny.zero["stage3_allgather_sequential"] = coin();
    pick_size(tiny.zero, "reduce_bucket_size", {300, 5000, 6000});
    pick_size(tiny.zero, "sub_group_size", {0, 1, 500, 5000, 6000});
    pick_size(tiny.zero, "stage3_prefetch_bucket_size", {0, 700, 4248, 9000});
    pick_size(tiny.zero, "stage3_param_persistence_threshold", {0, 5, 40, 41, 8000});
    pick_size(tiny.zero, "stage3_model_persistence_threshold", {60, 4248, 5000});
    pick_size(tiny.zero, "stage3_max_live_parameters", {0, 1500, 9000, 20000});
    pick_size(tiny.zero, "stage3_max_reuse_distance", {0, 500, 200000, 300000});
    tiny.root["gradient_clipping"] = pick<double>({0.0, 0.5, 1.0});
    if (tiny.dtype == DType::bf16) tiny.root["bf16"] = {{"check_grad_overflow", coin()}};
    if (coin()) tiny.root["communication_data_type"] = pick<const char*>({"fp32", "bf16", "fp16"});
    if (stage > 0 && coin()) tiny.root["data_types"] = {{"grad_accum_dtype", "fp32"}};
    Experiment experiment = tiny.make();
    experiment.settings.memory_limit = kUnlimited;
    return experiment;
  }

 private:
  bool coin() { return random_() % 2 == 0; }
  template <class Value>
  Value pick(std::initializer_list<Value> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
  }
  void pick_size(json::object& zero, const char* key, std::initializer_list<std::int64_t> values) {
    if (coin()) zero[key] = pick(values);
  }

  std::mt19937 random_;
};

/// The oracle: everything that a dry run does on the ranks that are looked at.
std::string effect_of(const Experiment& experiment) {
  const Effect effect =
      find_effect(experiment, ranks_to_look_at(experiment.ranks), make_dry_runner());
  return effect.skipped.empty() ? concat(effect.number) : effect.skipped;
}

class NormalForms : public testing::TestWithParam<int> {};

TEST_P(NormalForms, AreEqualForEqualStepsOnly) {
  constexpr int kConfigurations = 600;
  const NormalForm form(make_model_parameters(tiny_model()), kRanks);
  RandomConfig random(20261122);
  std::map<std::string, std::string> effect_of_form;
  int repeated = 0;
  for (int i = 0; i < kConfigurations; ++i) {
    const Experiment experiment = random.next(GetParam());
    const StepConfig step = make_step_config(experiment);
    if (!step.unsupported.empty()) continue;

    const std::string effect = effect_of(experiment);
    const auto [known, is_new] = effect_of_form.try_emplace(form.key(step), effect);

    repeated += is_new ? 0 : 1;
    ASSERT_EQ(known->second, effect) << to_json_text(experiment.ds_config, 0);
  }
  EXPECT_GT(repeated, 0);
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
}  // namespace dstune
