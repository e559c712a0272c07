#include "core/report/files/optimal.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "core/base/printable.hpp"
#include "core/base/text.hpp"
#include "core/experiment/knobs.hpp"
#include "core/report/files/command_words.hpp"

namespace dstune {

namespace {

// The nearest to the top wins: "stage" is found in zero_optimization, a top-level key before it.
const json::value* find_by_key(const json::object& object, std::string_view key) {
  if (const auto* value = object.if_contains(key)) return value;
  for (const auto& member : object) {
    if (!member.value().is_object()) continue;
    if (const auto* value = find_by_key(member.value().get_object(), key)) return value;
  }
  return nullptr;
}

// Training scripts are Python: booleans are written as Python does.
std::optional<std::string> argument_value(const json::object& config, std::string_view key) {
  const auto* value = find_by_key(config, key);
  if (value == nullptr || value->is_null() || value->is_object() || value->is_array()) {
    return std::nullopt;
  }
  if (value->is_bool()) return value->get_bool() ? "True" : "False";
  if (!value->is_string()) return to_json_text(*value, 0);
  if (value->get_string() == "auto") return std::nullopt;
  if (value->get_string().starts_with('-')) return std::nullopt;  // it would be another flag
  return std::string(value->get_string());
}

// No key in such a pointer has a slash or a tilde.
void leave_to_trainer(json::object& config, const std::string& pointer) {
  auto keys = split(std::string_view(pointer).substr(1), '/');
  const std::string last = std::move(keys.back());
  keys.pop_back();
  json::object* section = &config;
  for (const auto& key : keys) {
    auto* const found = section->if_contains(key);
    section = found == nullptr ? nullptr : found->if_object();
    if (section == nullptr) return;
  }
  if (auto* const value = section->if_contains(last)) *value = "auto";
}

/// The class of a model's leaf modules by its path, if DeepSpeed knows one.
std::optional<std::string_view> known_leaf_class(std::string_view model_type) {
  const std::string package = concat("models.", model_type, ".");
  for (const std::string_view path : kDefaultLeafClasses) {
    if (path.find(package) != std::string_view::npos) return path;
  }
  return std::nullopt;
}

// The leaf modules that the experiments ran with are named, also for a DeepSpeed that does not know
// them.
void name_leaf_modules(json::object& config, std::string_view model_type) {
  const auto known = known_leaf_class(model_type);
  json::object& zero = config["zero_optimization"].as_object();
  const auto* const given = zero.if_contains("leaf_module");
  if (!known || (given != nullptr && !given->is_null())) return;
  zero["leaf_module"] = json::object{{"classes", json::array{std::string(*known)}}};
}

bool is_off(const json::object& section) {
  const auto* const device = section.if_contains("device");
  return section.contains("device") && *device == "none";
}

/// The section at `pointer`, unless the file has none. "bfloat16" is DeepSpeed's other name of one.
json::object* find_section(json::object& config, std::string_view pointer) {
  json::object* section = &config;
  if (pointer.empty()) return section;
  for (const std::string& key : split(pointer.substr(1), '/')) {
    const bool is_other_name = key == "bf16" && !section->contains("bf16");
    auto* const found = section->if_contains(is_other_name ? "bfloat16" : key);
    section = found == nullptr ? nullptr : found->if_object();
    if (section == nullptr || is_off(*section)) return nullptr;
  }
  return section;
}

// So that the file means the same to every release: what its release does by default is written out
// wherever another release has another default.
void pin_defaults(json::object& config, const StepConfig& step) {
  for (const Knob& knob : kKnobs) {
    if (knob.defaults.empty() || !is_read(knob, step)) continue;
    json::object* const section = find_section(config, knob.section);
    if (section == nullptr || section->contains(knob.rule.key)) continue;
    (*section)[knob.rule.key] = default_of(knob, step.version);
  }
}

}  // namespace

json::object optimal_config(const Experiment& best, int ranks,
                            const std::vector<std::string>& left_to_trainer) {
  json::object config = best.ds_config.json();
  config.erase("autotuning");
  config.erase("dstune");
  const StepConfig step = make_step_config(best);
  const bool knows_leaves = step.behaviour.has_default_leaf_classes;
  config["train_batch_size"] = step.train_batch(ranks);
  config["train_micro_batch_size_per_gpu"] = step.micro_batch;
  config["gradient_accumulation_steps"] = step.accumulation_steps;
  if (step.stage == 3 && knows_leaves) name_leaf_modules(config, best.settings.model.family);
  pin_defaults(config, step);
  for (const auto& pointer : left_to_trainer) leave_to_trainer(config, pointer);
  return config;
}

std::vector<std::string> optimal_words(const std::vector<std::string>& command,
                                       const json::object& arg_mappings, const json::object& config,
                                       const OptimumFiles& files) {
  Words words = command;
  remove_autotuning(words);
  for (const auto& mapping : arg_mappings) {
    if (!mapping.value().is_string()) continue;
    const std::string flag(trim(std::string_view(mapping.value().get_string())));
    const auto value = argument_value(config, trim(std::string_view(mapping.key())));
    if (!flag.empty() && value) set_value(words, flag, *value);
  }
  for (const auto& [flag, value] : files.training_arguments) set_value(words, flag, value);
  const bool by_config = replace_value(words, "--deepspeed_config", files.deepspeed);
  const bool by_switch = replace_deepspeed_file(words, files.deepspeed);
  const bool is_named = by_config || by_switch;
  const bool by_accelerate = (!is_named || !files.accelerate.empty()) &&
                             set_accelerate_files(words, {files.deepspeed, files.accelerate});
  if (!is_named && !by_accelerate) {
    words.insert(words.end(), {"--deepspeed_config", files.deepspeed});
  }
  return words;
}

std::string shell_line(std::vector<std::string> words) {
  for (auto& word : words) word = shell_quoted(word);
  return join(words, " ");
}

namespace {

// A reader of the line in a terminal sees what it holds.
std::string quoted_for_bash(const std::string& word) {
  std::string quoted = "$'";
  for (const char letter : word) {
    const std::string shown = printable(std::string(1, letter));
    if (letter == '\'' || letter == '\\') quoted += '\\';
    quoted += shown;
  }
  return quoted + "'";
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string::npos) return word;
  if (printable(word) != word) return quoted_for_bash(word);
  std::string quoted = "'";
  for (const char letter : word) {
    if (letter == '\'') {
      quoted += "'\\''";
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}

}  // namespace dstune
