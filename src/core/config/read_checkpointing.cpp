#include "core/config/read_checkpointing.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/base/text.hpp"
#include "core/experiment/activation_checkpointing.hpp"
#include "core/input/section_reader.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document
using Unit = ActivationCheckpointing::Unit;

constexpr std::int64_t kMostLayers = 100'000;
constexpr KeyRule kKeys[] = {
    integer("every_n_layers", 1, kMostLayers),
    integer("checkpoint_num_layers", 1, kMostLayers),
    boolean("use_reentrant"),
    choice("by", "torch|deepspeed"),
};
constexpr Section kSection{.rules = kKeys};

std::optional<ActivationCheckpointing> read_object(const json::value& value,
                                                   const std::string& where, Problems& problems) {
  const std::size_t before = problems.count();
  const SectionReader reader(value, kSection, where, problems);
  if (problems.count() != before) return std::nullopt;
  ActivationCheckpointing result{.unit = Unit::layer};
  std::string by = "torch";
  reader.read("by", by);
  result.by_deepspeed = by == "deepspeed";
  const bool has_groups = reader.find("checkpoint_num_layers") != nullptr;
  if (has_groups || result.by_deepspeed) result.unit = Unit::group;
  if (reader.find("every_n_layers") != nullptr && result.unit == Unit::group) {
    problems.add(child(where, "every_n_layers"),
                 concat("is transformers' way; accepted: \"checkpoint_num_layers\" ",
                        result.by_deepspeed ? "with \"by\": \"deepspeed\"" : "or this, not both"));
    return std::nullopt;
  }
  reader.read(result.unit == Unit::group ? "checkpoint_num_layers" : "every_n_layers",
              result.count);
  result.reentrant = result.by_deepspeed;
  reader.read("use_reentrant", result.reentrant);
  if (result.by_deepspeed && !result.reentrant) {
    problems.add(child(where, "use_reentrant"),
                 "is false; accepted: true with \"by\": \"deepspeed\", which is so by itself");
    return std::nullopt;
  }
  return result;
}

std::optional<ActivationCheckpointing> read_value(const json::value& value,
                                                  const std::string& where, Problems& problems) {
  if (value.is_object()) return read_object(value, where, problems);
  try {
    return activation_checkpointing_from_json(value);
  } catch (const std::invalid_argument&) {
    problems.add(where, concat("is ", describe(value),
                               "; accepted: false, true, {\"every_n_layers\": 2}, "
                               "{\"checkpoint_num_layers\": 2}, either with \"use_reentrant\", "
                               "{\"by\": \"deepspeed\"}, or a list of these"));
  }
  return std::nullopt;
}

const json::value* find_in(const json::object& object, std::string_view section,
                           std::string_view key) {
  const auto* const found = object.if_contains(section);
  const auto* const inner = found == nullptr ? nullptr : found->if_object();
  const auto* const value = inner == nullptr ? nullptr : inner->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

// DeepSpeed asserts it when it is configured.
void check_section_of_it(const json::object& deepspeed, Problems& problems) {
  const auto is_on = [&](std::string_view key) {
    const auto* const value = find_in(deepspeed, "activation_checkpointing", key);
    return value != nullptr && *value == true;
  };
  if (is_on("contiguous_memory_optimization")) {
    const auto* const number = find_in(deepspeed, "activation_checkpointing", "number_checkpoints");
    if (!is_on("partition_activations") || number == nullptr) {
      problems.add("/activation_checkpointing/contiguous_memory_optimization",
                   "is true; accepted: false, or true with \"partition_activations\": true and "
                   "\"number_checkpoints\"");
    }
  }
  if (is_on("partition_activations")) {
    problems.warn("/activation_checkpointing/partition_activations",
                  "has no effect without model parallelism");
  }
}

bool switches_something_on(const json::object& deepspeed) {
  const auto* const section = deepspeed.if_contains("activation_checkpointing");
  if (section == nullptr || !section->is_object()) return false;
  return std::ranges::any_of(section->get_object(),
                             [](const auto& member) { return member.value() == true; });
}

bool is_by_deepspeed(const json::value& value) {
  return activation_checkpointing_from_json(value).by_deepspeed;
}

}  // namespace

std::vector<json::value> read_checkpointing(const json::object& file, Problems& problems) {
  const auto* const given = find_in(file, "dstune", "activation_checkpointing");
  if (given == nullptr) return {};
  const json::array list = given->is_array() ? given->get_array() : json::array{*given};
  if (list.empty())
    problems.add(kCheckpointingPointer, "is an empty list; accepted: [false, true]");
  std::vector<json::value> values;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where =
        given->is_array() ? child(kCheckpointingPointer, i) : kCheckpointingPointer;
    const auto value = read_value(list[i], where, problems);
    if (!value) continue;
    json::value form = to_json(*value);
    if (std::ranges::find(values, form) == values.end()) values.push_back(std::move(form));
  }
  return values;
}

void set_checkpointing(const std::vector<json::value>& values, json::object& deepspeed,
                       Problems& problems) {
  const bool says_something = values.size() > 1 || (values.size() == 1 && values.front() != false);
  if (says_something) {
    deepspeed["dstune"] = json::object{{"activation_checkpointing", values.front()}};
  }
  if (std::ranges::any_of(values, is_by_deepspeed)) {
    check_section_of_it(deepspeed, problems);
  } else if (switches_something_on(deepspeed)) {
    problems.warn("/activation_checkpointing",
                  "has no effect: it is read by deepspeed.checkpointing.checkpoint alone; if the "
                  "model calls that, say \"dstune\": {\"activation_checkpointing\": {\"by\": "
                  "\"deepspeed\"}}");
  }
}

}  // namespace dstune
