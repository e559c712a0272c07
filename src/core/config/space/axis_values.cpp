#include "core/config/space/axis_values.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/config/deepspeed/deepspeed_keys.hpp"
#include "core/config/deepspeed/deepspeed_table.hpp"
#include "core/config/space/ranges.hpp"
#include "core/config/space/symbolic.hpp"
#include "core/experiment/knobs.hpp"

namespace dstune {
namespace {

constexpr KeyRule kAccumulation = knob_of("", "gradient_accumulation_steps").rule;

/// Places that the search chooses values for anyway.
constexpr std::string_view kChosen[] = {"/zero_optimization/stage", "/train_batch_size",
                                        "/train_micro_batch_size_per_gpu"};
constexpr std::string_view kOfTheRun[] = {"autotuning", "dstune"};

template <class List>
bool contains(const List& list, std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

// Keys below a list or below an object that nobody describes.
KeyPlace beyond_rules(std::string pointer, const std::vector<std::string>& keys, std::size_t next) {
  for (; next < keys.size(); ++next) pointer = child(pointer, keys[next]);
  return {std::move(pointer)};
}

// Why a place that exists cannot be searched; "" if it can.
std::string fault_of(std::string_view pointer) {
  constexpr std::string_view kZero = "/zero_optimization";
  if (pointer == kZero) return "is searched key by key, not as a whole";
  if (pointer == child(kZero, "cpu_offload_use_pin_memory")) return "is an old form";
  for (const auto& [old_key, new_key] : deepspeed_table::kDeprecatedInZero) {
    if (pointer != child(kZero, old_key)) continue;
    return concat("is the old form of ", in_quotes(new_key), "; search that");
  }
  return "";
}

void add_once(Axis& axis, const json::value& value, const json::value& spelt) {
  if (std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end()) return;
  axis.values.push_back(value);
  axis.spelt.push_back(spelt);
}

Axis each_once(Axis given) {
  Axis axis{given.pointer, {}, {}};
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    add_once(axis, given.values[i], given.spelt[i]);
  }
  return axis;
}

std::optional<json::value> checked(const KeyPlace& place, const GivenValue& given,
                                   std::int64_t hidden_size, Problems& problems) {
  const json::value value = resolved(given.value, place.pointer, place.rule, hidden_size);
  if (is_auto(value)) {
    problems.add(given.where, "is \"auto\", which nothing resolves in this key; write a value");
    return std::nullopt;
  }
  if (place.rule == nullptr) return value;
  const json::value taken =
      place.section == nullptr ? value : as_taken(value, *place.rule, *place.section);
  return check_value(taken, *place.rule, given.where, problems);
}

}  // namespace

std::optional<KeyPlace> find_key(std::string_view pointer, std::string_view where,
                                 Problems& problems) {
  if (pointer.size() < 2 || pointer.front() != '/') {
    problems.add(
        std::string(where),
        "is not a JSON pointer; accepted: \"/zero_optimization/reduce_bucket_size\" and such");
    return std::nullopt;
  }
  const auto keys = keys_of(pointer);
  const Section* section = &deepspeed_section();
  KeyPlace place;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const KeyRule* const rule = find_rule(*section, keys[i]);
    if (rule == nullptr && section->other_keys && section->other_keys_warning.empty()) {
      return beyond_rules(place.pointer, keys, i);
    }
    if (rule == nullptr) {
      problems.add(std::string(where), concat("is a key that DeepSpeed does not know",
                                              suggestion(keys[i], known_keys(*section))));
      return std::nullopt;
    }
    place = {child(place.pointer, rule->key), rule, section};
    if (i == 0 && contains(kOfTheRun, rule->key)) {
      problems.add(std::string(where), "is the same in all experiments of a run");
      return std::nullopt;
    }
    if (rule->section == nullptr && i + 1 < keys.size()) {
      return beyond_rules(place.pointer, keys, i + 1);
    }
    section = rule->section;
  }
  if (const std::string fault = fault_of(place.pointer); !fault.empty()) {
    problems.add(std::string(where), fault);
    return std::nullopt;
  }
  if (contains(kChosen, place.pointer)) {
    problems.add(std::string(where), concat("is what the search chooses; a list at ", place.pointer,
                                            " itself bounds it"));
    return std::nullopt;
  }
  if (place.rule->key == kAccumulation.key) place.rule = &kAccumulation;
  return place;
}

std::vector<GivenValue> given_values(const json::array& list, std::string_view where) {
  std::vector<GivenValue> values;
  values.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) values.push_back({list[i], child(where, i)});
  return values;
}

Axis make_axis(const KeyPlace& place, const std::vector<GivenValue>& values,
               std::int64_t hidden_size, Problems& problems) {
  Axis axis{place.pointer, {}, {}};
  for (const GivenValue& given : values) {
    const auto value = checked(place, given, hidden_size, problems);
    if (!value) continue;
    axis.values.push_back(*value);
    axis.spelt.push_back(
        given.value.kind() == value->kind() || !given.value.is_string() ? given.value : *value);
  }
  return axis;
}

Axis read_axis(const KeyPlace& place, const json::value& given, std::string_view where,
               std::int64_t hidden_size, Problems& problems) {
  if (given.is_object()) {
    const auto list = read_range(given.get_object(), place, where, hidden_size, problems);
    std::vector<GivenValue> values;
    values.reserve(list.size());
    for (const auto& value : list) values.push_back({value, std::string(where)});
    return each_once(make_axis(place, values, hidden_size, problems));
  }
  if (!given.is_array() || given.get_array().empty()) {
    problems.add(std::string(where),
                 concat("is ", describe(given),
                        "; accepted: a list of values, or {\"from\", "
                        "\"to\"} with \"per_decade\", \"step\" or \"powers_of\""));
    return {place.pointer, {}, {}};
  }
  const auto& list = given.get_array();
  if (list.size() > kLongestAxis) {
    problems.add(std::string(where),
                 concat("has ", list.size(), " values; accepted: at most ", kLongestAxis));
    return {place.pointer, {}, {}};
  }
  return each_once(make_axis(place, given_values(list, where), hidden_size, problems));
}

}  // namespace dstune
