#include "core/config/deepspeed/auto_values.hpp"

#include <string_view>

#include "core/experiment/knobs.hpp"
#include "core/input/coercions.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

bool replace_auto(json::object* section, std::string_view key, const json::value& value) {
  if (section == nullptr) return false;
  auto* found = section->if_contains(key);
  if (found == nullptr || !is_auto(*found)) return false;
  *found = value;
  return true;
}

json::object* section_of(json::object* parent, std::string_view key) {
  auto* found = parent == nullptr ? nullptr : parent->if_contains(key);
  return found == nullptr ? nullptr : found->if_object();
}

// What is open beside a precision that is on is off: the Trainer knows one of them.
void resolve_precision(json::object& deepspeed) {
  for (const char* name : {"fp16", "bf16", "bfloat16"}) {
    replace_auto(section_of(&deepspeed, name), "enabled", false);
  }
}

void collect_auto(const json::value& value, const std::string& pointer,
                  std::vector<std::string>& found) {
  if (is_auto(value)) {
    found.push_back(pointer);
  } else if (value.is_object()) {
    for (const auto& member : value.get_object()) {
      collect_auto(member.value(), child(pointer, std::string_view(member.key())), found);
    }
  } else if (value.is_array()) {
    const auto& list = value.get_array();
    for (std::size_t i = 0; i < list.size(); ++i) collect_auto(list[i], child(pointer, i), found);
  }
}

}  // namespace

json::object resolve_auto(json::object deepspeed, std::int64_t hidden_size) {
  for (const Knob& knob : kKnobs) {
    if (knob.auto_value == nullptr) continue;
    json::object* section = &deepspeed;
    if (!knob.section.empty()) section = section_of(&deepspeed, knob.section.substr(1));
    const std::int64_t value = knob.auto_value(hidden_size);
    const bool is_integer = knob.rule.kind == ValueKind::integer;
    replace_auto(section, knob.rule.key,
                 is_integer ? json::value(value) : json::value(static_cast<double>(value)));
  }
  auto* const params = section_of(section_of(&deepspeed, "optimizer"), "params");
  replace_auto(params, "lr", 5e-5);
  replace_auto(params, "betas", json::array{0.9, 0.999});
  replace_auto(params, "eps", 1e-8);
  replace_auto(params, "weight_decay", 0.0);

  resolve_precision(deepspeed);
  return deepspeed;
}

std::vector<std::string> left_to_trainer(const json::object& deepspeed) {
  std::vector<std::string> left;
  for (const auto& pointer : find_auto(deepspeed)) {
    const bool is_optimizers = pointer.starts_with("/optimizer/params/");
    if (is_optimizers || pointer == "/gradient_clipping") left.push_back(pointer);
  }
  return left;
}

std::vector<std::string> find_auto(const json::value& value) {
  std::vector<std::string> found;
  collect_auto(value, "", found);
  return found;
}

}  // namespace dstune
