#include <initializer_list>
#include <string>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/rotary_frequencies.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr const char* kContext = "original_max_position_embeddings";

constexpr std::string_view kKinds = "default|linear|dynamic|llama3|yarn|longrope";

constexpr KeyRule kRopeRules[] = {
    choice("rope_type", kKinds),
    choice("type", kKinds),  // of older files, which may have both
    above("rope_theta", 1).or_null(),
    within("partial_rotary_factor", 1, 1)
        .or_null()
        .because("; heads of this family turn as a whole"),
    at_least("factor", 1).or_null(),
    integer("original_max_position_embeddings", 2, kMostTokens).or_null(),
    above("low_freq_factor", 0),
    above("high_freq_factor", 0),
    above("attention_factor", 0).or_null(),
    above("beta_fast", 0).or_null(),
    above("beta_slow", 0).or_null(),
    at_least("mscale", 0).or_null(),
    at_least("mscale_all_dim", 0).or_null(),
    boolean("truncate"),
    list("short_factor").or_null(),
    list("long_factor").or_null(),
};
constexpr Section kRope{.rules = kRopeRules,
                        .other_keys = true,
                        .other_keys_warning = "is not a rotary setting and has no effect"};

bool has(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && !value->is_null();
}

std::initializer_list<const char*> required_by(std::string_view type) {
  static constexpr std::initializer_list<const char*> kFactor = {"factor"};
  static constexpr std::initializer_list<const char*> kLlama3 = {"factor", "low_freq_factor",
                                                                 "high_freq_factor"};
  static constexpr std::initializer_list<const char*> kLongrope = {"short_factor", "long_factor"};
  if (type == "linear" || type == "dynamic" || type == "yarn") return kFactor;
  if (type == "llama3") return kLlama3;
  if (type == "longrope") return kLongrope;
  return {};
}

void check_factors(const json::object& rope, const char* key, std::int64_t columns,
                   std::string_view pointer, Problems& problems) {
  const auto& list = rope.at(key).get_array();
  bool is_right = static_cast<std::int64_t>(list.size()) == columns / 2;
  for (const auto& value : list) {
    is_right = is_right && value.is_number() && value.to_number<double>() > 0;
  }
  if (is_right) return;
  problems.add(child(pointer, key),
               concat("is not a list of ", columns / 2, " numbers above 0, half a head's columns"));
}

void check_kind(const json::object& rope, std::int64_t columns, std::string_view pointer,
                Problems& problems) {
  const auto type = json::value_to<std::string>(rope.at("rope_type"));
  bool is_whole = true;
  for (const char* key : required_by(type)) {
    if (has(rope, key)) continue;
    is_whole = false;
    problems.add(child(pointer, key), concat("is missing, which rope_type ", type, " needs"));
  }
  if (!is_whole) return;
  if (type == "longrope") {
    check_factors(rope, "short_factor", columns, pointer, problems);
    check_factors(rope, "long_factor", columns, pointer, problems);
  }
  if (type == "llama3" && rope.at("high_freq_factor").to_number<double>() <=
                              rope.at("low_freq_factor").to_number<double>()) {
    problems.add(child(pointer, "high_freq_factor"), "is not above low_freq_factor");
  }
}

/// Which of the two objects counts: rope_scaling, of files older than transformers 5, comes first.
const char* name_of_section(const json::object& config) {
  return has(config, "rope_scaling") ? "rope_scaling" : "rope_parameters";
}

void make_double(json::value& value) {
  if (value.is_number()) value = value.to_number<double>();
  if (value.is_array()) {
    for (auto& element : value.get_array()) make_double(element);
  }
}

// Equal settings are equal texts, however a file writes them.
void complete(json::object& rope, const json::object& config, std::int64_t max_positions) {
  constexpr double kTheta = 10000;
  if (!has(rope, "rope_type")) rope["rope_type"] = has(rope, "type") ? rope.at("type") : "default";
  rope.erase("type");
  if (!has(rope, "rope_theta")) {
    rope["rope_theta"] = has(config, "rope_theta") ? config.at("rope_theta") : json::value(kTheta);
  }
  for (auto& member : rope) make_double(member.value());
  const std::string_view type = rope.at("rope_type").get_string();
  const bool reads_context = type == "llama3" || type == "yarn" || type == "longrope";
  if (reads_context && !has(rope, kContext)) rope[kContext] = static_cast<double>(max_positions);
}

}  // namespace

std::optional<json::object> read_rope_parameters(const json::object& config,
                                                 std::int64_t max_positions, std::int64_t columns,
                                                 std::string_view pointer, Problems& problems) {
  const auto faults = problems.count();
  const char* const name = name_of_section(config);
  const std::string place = child(pointer, name);
  json::object rope;
  if (has(config, name)) rope = check_section(config.at(name).as_object(), kRope, place, problems);
  if (problems.count() > faults) return std::nullopt;
  complete(rope, config, max_positions);
  check_kind(rope, columns, place, problems);
  if (problems.count() > faults) return std::nullopt;
  return sorted_by_key(rope).get_object();
}

}  // namespace dstune
