#include "core/search/space/normal_form.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>
#include <variant>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/space/axis.hpp"
#include "core/experiment/knobs.hpp"
#include "core/search/space/effect.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::normal_form_test {
namespace {

using test::tiny_model;
using test::TinyExperiment;

constexpr int kRanks = 3;

/// Values of a knob, some beyond what the tiny model (910 elements) notices; none of a section
/// that no step is modelled with.
json::array values_of(const Knob& knob) {
  const KeyRule& rule = knob.rule;
  if (rule.key == "optimizer") return {{{"type", "Adam"}}, {{"type", "SGD"}}};
  if (rule.key == "leaf_module") return {{{"classes", {"GPT2Block"}}}, json::object{}};
  if (rule.key == "activation_checkpointing") return {false, true, "groups_of_1_layers"};
  json::array values;
  if (rule.kind == ValueKind::boolean) values = {true, false};
  if (rule.kind == ValueKind::text) {
    for (const std::string& choice : split(rule.choices, '|')) values.emplace_back(choice);
  }
  if (rule.kind == ValueKind::number) {
    for (const double number : {0.0, 0.5, 1.0, 2.0}) {
      if (number > rule.low || (number == rule.low && !rule.low_excluded)) {
        values.emplace_back(number);
      }
    }
  }
  if (rule.kind == ValueKind::integer) {
    const std::initializer_list<int> few = {0, 1, 2, 3};  // ranks, stages
    const std::initializer_list<int> many = {0,    1,    5,    11,   12,    20,     40,    50,
                                             100,  200,  300,  600,  910,   1000,   1500,  3000,
                                             5000, 6000, 8000, 9000, 20000, 200000, 300000};
    for (const int number : rule.max <= kMostInt ? few : many) {
      if (number >= rule.min && number <= rule.max) values.emplace_back(number);
    }
  }
  return values;
}

/// Those that a configuration's ZeRO section can be given beside others.
std::vector<const Knob*> knobs_of_zero() {
  std::vector<const Knob*> found;
  for (const Knob& knob : kKnobs) {
    const bool is_other = knob.section == "/zero_optimization" && knob.rule.key != "stage";
    if (is_other && !values_of(knob).empty()) found.push_back(&knob);
  }
  return found;
}

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
    for (std::size_t i = 0; i < knobs_.size() / 2; ++i) change_a_knob(tiny);
    tiny.root["gradient_clipping"] = pick<double>({0.0, 0.5, 1.0});
    if (tiny.dtype == DType::bf16) tiny.root["bf16"] = {{"check_grad_overflow", coin()}};
    if (coin()) tiny.root["communication_data_type"] = pick<const char*>({"fp32", "bf16", "fp16"});
    if (stage > 0 && coin()) tiny.root["data_types"] = {{"grad_accum_dtype", "fp32"}};
    return tiny;
  }

  void change_a_knob(TinyExperiment& tiny) {
    const Knob& knob = *knobs_[random_() % knobs_.size()];
    const json::array values = values_of(knob);
    tiny.zero[knob.rule.key] = values[random_() % values.size()];
  }

 private:
  bool coin() { return random_() % 2 == 0; }
  template <class Value>
  Value pick(std::initializer_list<Value> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
  }

  std::vector<const Knob*> knobs_ = knobs_of_zero();
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
        << to_json_text(experiment.ds_config.json(), 0) << '\n'
        << to_json_text(neighbour.ds_config.json(), 0);
  }
  EXPECT_GT(alike, kConfigurations / 10);
}

INSTANTIATE_TEST_SUITE_P(Stages, NormalForms, testing::Values(0, 1, 2, 3));

/// What else a configuration may hold that decides whether a knob does anything.
const json::object kSettings[] = {
    {},
    {{"bf16", {{"enabled", true}}}},
    {{"bf16", {{"enabled", true}}}, {"data_types", {{"grad_accum_dtype", "fp32"}}}},
    {{"fp16", {{"enabled", true}}}},
    {{"zero_optimization", {{"contiguous_gradients", false}}}},
    {{"zero_optimization",
      {{"stage3_param_persistence_threshold", 0}, {"stage3_max_live_parameters", 0}}}},
    {{"dstune", {{"activation_checkpointing", "groups_of_1_layers_by_deepspeed"}}}},
};

struct Seen {
  bool forms_differ = false;  ///< of configurations that differ in the knob alone
  bool steps_differ = false;  ///< or what is not modelled of them does
  bool should_differ = false;
};

/// The experiment with a value of the knob beside a setting.
Experiment experiment_with(const Knob& knob, const json::value& value, int stage,
                           const json::object& setting) {
  TinyExperiment tiny;
  tiny.stage = stage;
  tiny.ranks = 4;
  tiny.accumulation_steps = 2;
  tiny.devices_per_node = 2;
  tiny.root = setting;
  Experiment experiment = tiny.make();
  json::object config = experiment.ds_config.json();
  set_at(config, keys_of(pointer_of(knob)), value);
  experiment.ds_config = std::move(config);
  return experiment;
}

/// Every value of the knob beside every setting.
Seen look_at(const Knob& knob, int stage) {
  const NormalForm form(make_model_parameters(tiny_model()), 4);
  Seen seen;
  for (const json::object& setting : kSettings) {
    std::set<std::string> forms;
    std::set<std::string> steps;
    for (const json::value& value : values_of(knob)) {
      try {
        const StepConfig step = make_step_config(experiment_with(knob, value, stage, setting));
        const std::string key = form.key(step);
        forms.insert(key);
        steps.insert(key + (step.unsupported.empty() ? "" : step.unsupported.front()));
        const bool has_member = !std::holds_alternative<std::monostate>(knob.member);
        seen.should_differ = seen.should_differ || (has_member && changes_step(knob, step));
      } catch (const std::invalid_argument&) {  // fp16 beside bf16
      }
    }
    seen.forms_differ = seen.forms_differ || forms.size() > 1;
    seen.steps_differ = seen.steps_differ || steps.size() > 1;
  }
  return seen;
}

std::vector<const Knob*> all_knobs() {
  std::vector<const Knob*> all;
  for (const Knob& knob : kKnobs) all.push_back(&knob);
  return all;
}

class EachKnob : public testing::TestWithParam<const Knob*> {};

std::string name_of_knob(const testing::TestParamInfo<const Knob*>& knob) {
  std::string name = pointer_of(*knob.param).substr(1);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, EachKnob, testing::ValuesIn(all_knobs()), name_of_knob);

TEST_P(EachKnob, MakesAnotherFormInTheStagesWhereItChangesTheStep) {
  if (values_of(*GetParam()).empty()) {
    ASSERT_TRUE(std::holds_alternative<std::monostate>(GetParam()->member)) << "has no values";
  }
  for (const int stage : {0, 1, 2, 3}) {
    const Seen seen = look_at(*GetParam(), stage);
    EXPECT_EQ(seen.forms_differ, seen.should_differ) << "stage " << stage;
  }
}

// By the dry run, so that the table does not judge itself.
TEST_P(EachKnob, MakesAnotherStepInTheStagesWhereTheTableSaysSo) {
  for (const int stage : {0, 1, 2, 3}) {
    if (!look_at(*GetParam(), stage).should_differ) continue;
    std::set<std::string> steps;
    for (const json::object& setting : kSettings) {
      steps.clear();
      for (const json::value& value : values_of(*GetParam())) {
        try {
          steps.insert(effect_of(experiment_with(*GetParam(), value, stage, setting)));
        } catch (const std::invalid_argument&) {  // fp16 beside bf16
        }
        if (steps.size() > 1) break;
      }
      if (steps.size() > 1) break;
    }
    EXPECT_GT(steps.size(), 1U) << "stage " << stage;
  }
}

TEST_P(EachKnob, DoesNothingOnlyWhereAllItsValuesAreTheSame) {
  const Knob& knob = *GetParam();
  if (values_of(knob).empty()) return;
  for (const int stage : {0, 1, 2, 3}) {
    const bool is_same = !look_at(knob, stage).steps_differ;
    const bool is_idle = does_nothing(pointer_of(knob), stage);
    if (knob.section == "/zero_optimization") {
      EXPECT_EQ(is_idle, is_same) << "stage " << stage;
    } else {
      EXPECT_TRUE(!is_idle || is_same) << "stage " << stage;
    }
  }
}

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
