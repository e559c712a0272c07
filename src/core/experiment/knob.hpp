// What is known of a knob, which is a key of the DeepSpeed configuration that changes a step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/experiment/step_config.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

/// Batch sizes beyond this are typing mistakes, and their products would overflow.
constexpr std::int64_t kLargestBatch = 1'000'000'000;
/// Of numbers of ranks and steps.
constexpr std::int64_t kMostInt = 2'147'483'647;
/// Elements of buffers that are allocated as given: 10^15 of them are petabytes.
constexpr std::int64_t kMostElements = 1'000'000'000'000'000;

/// Some of ZeRO's stages.
struct StageSet {
  unsigned bits = 0;

  constexpr bool contains(int stage) const {
    return (bits >> static_cast<unsigned>(stage) & 1U) != 0;
  }
};
template <class... Stages>
constexpr StageSet in_stages(Stages... numbers) {
  return {((1U << static_cast<unsigned>(numbers)) | ... | 0U)};
}
constexpr StageSet kAllStages = in_stages(0, 1, 2, 3);
constexpr StageSet kZeroStages = in_stages(1, 2, 3);

/// A member of StepConfig::loss_scale.
template <class Value>
struct ScaleMember {
  Value LossScaleConfig::*inner = nullptr;
  bool operator==(const ScaleMember&) const = default;
};

/// Where a StepConfig holds a knob; monostate: nowhere.
using KnobMember =
    std::variant<std::monostate, bool StepConfig::*, int StepConfig::*, std::int64_t StepConfig::*,
                 double StepConfig::*, DType StepConfig::*, std::optional<DType> StepConfig::*,
                 LeafModuleConfig StepConfig::*, ActivationCheckpointing StepConfig::*,
                 OptimizerConfig StepConfig::*, ScaleMember<bool>, ScaleMember<int>,
                 ScaleMember<double>>;

template <class Value, class Config>
auto& member_of(Config& config, Value StepConfig::*member) {
  return config.*member;
}
template <class Value, class Config>
auto& member_of(Config& config, ScaleMember<Value> member) {
  return config.loss_scale.*member.inner;
}

/// What is usual in a release and those after it, until the next one that is named; false and true
/// are 0 and 1.
struct DefaultSince {
  DeepSpeedVersion since;
  double value = 0;
};

/// Elements of the model that sizes of buffers are derived from.
struct ModelSizes {
  std::int64_t hidden_size = 1;
  std::int64_t all = 1;
  std::int64_t layer = 1;
  std::int64_t trained = 1;        ///< of `all`: what is reduced and stepped
  std::int64_t trained_layer = 1;  ///< of `layer`
  int ranks = 1;

  /// Beyond it no limit changes anything: what is live and what is reused is at most the model,
  /// once forwards and once backwards.
  std::int64_t no_limit() const { return 8 * all; }
};

/// A row of the table (knobs.hpp). Its methods give a copy with one more fact. Names of experiments
/// have the acronym that DeepSpeed makes of the key (core/search/space/canonical_name.hpp).
struct Knob {
  using Condition = bool (*)(const StepConfig& config);
  using Reader = void (*)(const json::object& section, const Knob& knob, StepConfig& config);
  using AutoValue = std::int64_t (*)(std::int64_t hidden_size);
  using SearchValues = std::vector<std::int64_t> (*)(const ModelSizes& model);

  std::string_view section;  ///< JSON pointer of the object that has it; "": the file
  KeyRule rule;              ///< the key and its alias, type, bounds
  KnobMember member{};
  StageSet stages = kAllStages;          ///< whose step reads it
  Condition read_if = nullptr;           ///< where that hangs on other knobs; null: it does not
  Condition changes_step_if = nullptr;   ///< where another value is another step, not only other
                                         ///< numbers in it; null: wherever it is read
  Reader reader = nullptr;               ///< null: by the type of its member
  AutoValue auto_value = nullptr;        ///< what Hugging Face makes of "auto"; null: nothing
  bool decides_messages = false;         ///< of what types they are, or who sends them to whom
  SearchValues search_values = nullptr;  ///< in our default space; null: it is not in it
  std::span<const DefaultSince> defaults{};  ///< where releases differ; else the member's own

  /// A copy whose `fact` is `value`; before its callers, or clang 14 does not find it in constants.
  template <class Fact>
  constexpr Knob with(Fact Knob::*fact, const Fact& value) const {
    Knob knob = *this;
    knob.*fact = value;
    return knob;
  }
  constexpr Knob when(Condition condition) const { return with(&Knob::read_if, condition); }
  constexpr Knob changing_when(Condition condition) const {
    return with(&Knob::changes_step_if, condition);
  }
  constexpr Knob read_by(Reader own) const { return with(&Knob::reader, own); }
  constexpr Knob with_auto(AutoValue value) const { return with(&Knob::auto_value, value); }
  constexpr Knob deciding_messages() const { return with(&Knob::decides_messages, true); }
  constexpr Knob searched(SearchValues values) const { return with(&Knob::search_values, values); }
  constexpr Knob by_release(std::span<const DefaultSince> rows) const {
    return with(&Knob::defaults, rows);
  }
};

/// Calls `use` with the knob's member of each of `configs`, unless it has none.
template <class Use, class... Configs>
void with_member(const Knob& knob, Use use, Configs&... configs) {
  std::visit(
      [&](const auto& member) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(member)>, std::monostate>) {
          use(member_of(configs, member)...);
        }
      },
      knob.member);
}

}  // namespace dstune
