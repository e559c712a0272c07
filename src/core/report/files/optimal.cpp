#include "core/report/files/optimal.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"

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
  return std::string(value->get_string());
}

bool is_flag(const std::string& word) { return word.size() > 1 && word.compare(0, 2, "--") == 0; }

// Sets the value of every `flag` in `words`; false if there is none.
bool replace_value(std::vector<std::string>& words, const std::string& flag,
                   const std::string& value) {
  bool found = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].compare(0, flag.size() + 1, flag + "=") == 0) {
      words[i] = concat(flag, "=", value);
      found = true;
    } else if (words[i] == flag) {
      const bool has_value = i + 1 < words.size() && !is_flag(words[i + 1]);
      if (!has_value) words.insert(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, "");
      words[++i] = value;
      found = true;
    }
  }
  return found;
}

bool names_json_file(const std::string& word) { return word.find(".json") != std::string::npos; }

// --deepspeed is a switch in DeepSpeed's own parser and takes the file in Hugging Face's.
bool replace_deepspeed_file(std::vector<std::string>& words, const std::string& path) {
  bool found = false;
  const std::string with_value = "--deepspeed=";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].compare(0, with_value.size(), with_value) == 0 && names_json_file(words[i])) {
      words[i] = with_value + path;
      found = true;
    } else if (words[i] == "--deepspeed" && i + 1 < words.size() && !is_flag(words[i + 1]) &&
               names_json_file(words[i + 1])) {
      words[++i] = path;
      found = true;
    }
  }
  return found;
}

}  // namespace

json::object optimal_config(const Experiment& best, int ranks) {
  json::object config = best.ds_config;
  config.erase("autotuning");
  config.erase("dstune");
  const StepConfig step = make_step_config(best);
  config["train_batch_size"] = step.train_batch(ranks);
  config["train_micro_batch_size_per_gpu"] = step.micro_batch;
  config["gradient_accumulation_steps"] = step.accumulation_steps;
  return config;
}

std::string optimal_command(const std::vector<std::string>& command,
                            const json::object& arg_mappings, const json::object& config,
                            const std::string& config_path) {
  std::vector<std::string> words = command;
  for (const auto& mapping : arg_mappings) {
    if (!mapping.value().is_string()) continue;
    const std::string flag(trim(std::string_view(mapping.value().get_string())));
    const auto value = argument_value(config, trim(std::string_view(mapping.key())));
    if (flag.empty() || !value) continue;
    if (!replace_value(words, flag, *value)) {
      words.push_back(flag);
      words.push_back(*value);
    }
  }
  const bool by_config = replace_value(words, "--deepspeed_config", config_path);
  const bool by_switch = replace_deepspeed_file(words, config_path);
  if (!by_config && !by_switch) {
    words.insert(words.end(), {"--deepspeed_config", config_path});
  }
  for (auto& word : words) word = shell_quoted(word);
  return join(words, " ");
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string::npos) return word;
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
