// The description of a knob: a key of the DeepSpeed configuration that changes a step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/device/drive/aio_settings.hpp"
#include "core/experiment/step_config.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

/// Batch sizes beyond this are typing mistakes, and their products would overflow.
constexpr std::int64_t kLargestBatch = 1'000'000'000;
/// The upper bound of numbers of ranks and steps, the largest int.
constexpr std::int64_t kMostInt = 2'147'483'647;
/// The upper bound of buffer sizes in elements. Such buffers are allocated as given, and 10^15
/// elements are petabytes.
constexpr std::int64_t kMostElements = 1'000'000'000'000'000;

/// A set of ZeRO stages.
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

/// Names a member of StepConfig::loss_scale.
template <class Value>
struct ScaleMember {
  Value LossScaleConfig::*inner = nullptr;
  bool operator==(const ScaleMember&) const = default;
};

/// Names a member of StepConfig::aio.
template <class Value>
struct AioMember {
  Value AioSettings::*inner = nullptr;
  bool operator==(const AioMember&) const = default;
};

/// The member in which a StepConfig holds a knob; monostate: no member does.
using KnobMember =
    std::variant<std::monostate, bool StepConfig::*, int StepConfig::*, std::int64_t StepConfig::*,
                 double StepConfig::*, DType StepConfig::*, std::optional<DType> StepConfig::*,
                 LeafModuleConfig StepConfig::*, ActivationCheckpointing StepConfig::*,
                 OptimizerConfig StepConfig::*, OffloadDevice StepConfig::*,
                 std::string StepConfig::*, ScaleMember<bool>, ScaleMember<int>,
                 ScaleMember<double>, AioMember<bool>, AioMember<int>, AioMember<Bytes>>;

template <class Value, class Config>
auto& member_of(Config& config, Value StepConfig::*member) {
  return config.*member;
}
template <class Value, class Config>
auto& member_of(Config& config, ScaleMember<Value> member) {
  return config.loss_scale.*member.inner;
}
template <class Value, class Config>
auto& member_of(Config& config, AioMember<Value> member) {
  return config.aio.*member.inner;
}

/// The default value in a release and those after it, until the next release that is named; false
/// and true are 0 and 1.
struct DefaultSince {
  DeepSpeedVersion since;
  double value = 0;
};

/// The numbers of elements of the model from which sizes of buffers are derived.
struct ModelSizes {
  std::int64_t hidden_size = 1;
  std::int64_t all = 1;
  std::int64_t layer = 1;
  std::int64_t trained = 1;        ///< the part of `all` that is reduced and stepped
  std::int64_t trained_layer = 1;  ///< the part of `layer` that is trained
  int ranks = 1;

  /// A limit that is never reached: live and reused parameters are at most the model, once in
  /// forward and once in backward.
  std::int64_t no_limit() const { return 8 * all; }
};

/// A row of the table (knobs.hpp). The methods return a copy with one more fact. Names of
/// experiments contain the acronym that DeepSpeed makes of the key
/// (core/search/space/canonical_name.hpp).
struct Knob {
  using Condition = bool (*)(const StepConfig& config);
  using Reader = void (*)(const json::object& section, const Knob& knob, StepConfig& config);
  using AutoValue = std::int64_t (*)(std::int64_t hidden_size);
  using SearchValues = std::vector<std::int64_t> (*)(const ModelSizes& model);

  std::string_view section;  ///< JSON pointer of the object that has it; "": the file
  KeyRule rule;              ///< the key and its alias, type, bounds
  KnobMember member{};
  StageSet stages = kAllStages;  ///< the stages whose step reads the knob
  /// The condition on other knobs under which it is read; null: there is none.
  Condition read_if = nullptr;
  /// Where another value makes another step, not only other numbers in the same one; null: wherever
  /// the knob is read.
  Condition changes_step_if = nullptr;
  Reader reader = nullptr;         ///< null: the type of the member decides how it is read
  AutoValue auto_value = nullptr;  ///< the value that Hugging Face gives it for "auto"; null: none
  /// Whether it decides the types of messages, or who sends them to whom.
  bool decides_messages = false;
  /// Its values in our default space; null: the space leaves it alone.
  SearchValues search_values = nullptr;
  /// By release, where releases differ; empty: the member's own default.
  std::span<const DefaultSince> defaults{};

  /// A copy whose `fact` is `value`. It is defined before its callers because clang 14 does not
  /// find it in constant expressions otherwise.
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

/// Calls `use` with the knob's member of each of `configs`, unless the knob has no member.
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
