// Phi3Config of transformers 5.23: RoPE may turn parts of heads, and the first context stands
// beside its settings.
#include <string>
#include <utility>

#include "core/base/text.hpp"
#include "core/model/llama/llama_values.hpp"
#include "core/model/rotary_frequencies.hpp"

namespace dstune::llama {

namespace {

constexpr std::int64_t kContext = 4096;
constexpr const char* kPart = "partial_rotary_factor";

/// Takes the part out of `rope`; where that has none, it is that of the whole.
double take_part(const Values& values, json::object& rope) {
  double part = values.get(kPart, 1.0);
  const auto* own = rope.if_contains(kPart);
  if (own != nullptr && own->is_number()) {
    part = own->to_number<double>();
    rope.erase(kPart);
  }
  return part;
}

/// Older files call longrope "su" or "yarn"; there are no other kinds.
/// @returns false, with a problem, for another
bool take_type(json::object& rope, const std::string& pointer, Problems& problems) {
  for (const char* key : {"type", "rope_type"}) {
    const auto* type = rope.if_contains(key);
    if (type == nullptr) continue;
    if (*type == "su" || *type == "yarn") {
      rope[key] = "longrope";
    } else if (*type != "longrope" && *type != "default") {
      problems.add(child(pointer, key),
                   concat("is ", describe(*type), "; accepted: \"default\", \"longrope\""));
      return false;
    }
  }
  return true;
}

bool is_longrope(const json::object& rope) {
  const auto* type = rope.if_contains(rope.contains("rope_type") ? "rope_type" : "type");
  return type != nullptr && *type == "longrope";
}

}  // namespace

void read_rope_of_phi(const Values& values, const ModelSpec& spec, std::int64_t head_size,
                      std::string_view pointer, Problems& problems, json::object& own) {
  const char* const name =
      values.find("rope_scaling") != nullptr ? "rope_scaling" : "rope_parameters";
  const auto* given = values.find(name);
  json::object rope = given != nullptr ? given->get_object() : json::object();
  const double part = take_part(values, rope);
  const auto turned = static_cast<std::int64_t>(static_cast<double>(head_size) * part);
  if (part > 1 || turned < 2 || turned % 2 != 0) {
    problems.add(child(pointer, kPart),
                 concat("is ", part, ", so that ", turned, " of a head's ", head_size,
                        " columns turn; accepted: up to 1, for an even number of columns"));
    return;
  }
  if (!take_type(rope, child(pointer, name), problems)) return;
  if (is_longrope(rope)) {
    rope["original_max_position_embeddings"] =
        values.get("original_max_position_embeddings", kContext);
  }
  json::object config{{name, std::move(rope)}};
  if (const auto* theta = values.find("rope_theta")) config["rope_theta"] = *theta;
  auto read = read_rope_parameters(config, spec.max_positions, turned, pointer, problems);
  if (read) own["rope_parameters"] = std::move(*read);
  own[kPart] = part;
}

}  // namespace dstune::llama
