#include "core/model/lora_targets.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/pattern.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool is_listed(const std::vector<std::string>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& end) { return is_name_or_end(name, end); });
}

// The first number of the path behind two names: "model.layers.3.mlp", not "3.mlp".
std::optional<std::int64_t> layer_of(const std::string& name) {
  const auto parts = split(name, '.');
  for (std::size_t i = 2; i + 1 < parts.size(); ++i) {
    std::int64_t number = 0;
    const char* const end = parts[i].data() + parts[i].size();
    const auto [stop, error] = std::from_chars(parts[i].data(), end, number);
    if (error == std::errc() && stop == end) return number;
  }
  return std::nullopt;
}

bool is_in_layers(const std::vector<std::int64_t>& layers, const std::string& name) {
  if (layers.empty()) return true;
  const auto layer = layer_of(name);
  return layer && std::find(layers.begin(), layers.end(), *layer) != layers.end();
}

/// Whether names are chosen by a list or a pattern, neither of which chooses none.
class Choice {
 public:
  Choice(const std::vector<std::string>& list, const std::string& pattern) : list_(list) {
    if (!pattern.empty()) pattern_.emplace(pattern);
  }
  bool has(const std::string& name) const {
    return pattern_ ? pattern_->matches(name) : is_listed(list_, name);
  }

 private:
  const std::vector<std::string>& list_;
  std::optional<Pattern> pattern_;
};

bool is_within(const std::vector<std::size_t>& modules, const ModelParameters& parameters,
               std::size_t module) {
  return std::any_of(modules.begin(), modules.end(), [&](std::size_t outer) {
    return outer <= module && module < parameters.end_of(outer);
  });
}

}  // namespace

bool is_name_or_end(std::string_view name, std::string_view end) {
  if (!ends_with(name, end)) return false;
  return name.size() == end.size() || name[name.size() - end.size() - 1] == '.';
}

bool is_linear(const ModuleSpec& module) {
  return module.class_name == "Linear" || module.class_name == "Conv1D";
}

std::optional<std::size_t> output_embeddings(const ModelParameters& parameters, Task task) {
  if (task == Task::sequence_classification) return std::nullopt;
  for (std::size_t module = parameters.modules.size(); module-- > 0;) {
    if (is_linear(parameters.modules[module])) return module;
  }
  return std::nullopt;
}

std::vector<std::size_t> find_lora_targets(const LoraSettings& lora,
                                           const ModelParameters& parameters, Task task) {
  const bool all_linear = lora.target_pattern == LoraSettings::kAllLinear;
  const Choice targets(lora.targets, all_linear ? std::string() : lora.target_pattern);
  const Choice excluded(lora.excluded, lora.excluded_pattern);
  const auto saved = find_saved_modules(lora, parameters);
  const auto output = output_embeddings(parameters, task);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < parameters.modules.size(); ++i) {
    const ModuleSpec& module = parameters.modules[i];
    const bool chosen = all_linear
                            ? is_linear(module) && i != output
                            : targets.has(module.name) && is_in_layers(lora.layers, module.name);
    if (chosen && !excluded.has(module.name) && !is_within(saved, parameters, i)) {
      found.push_back(i);
    }
  }
  return found;
}

std::vector<std::size_t> find_saved_modules(const LoraSettings& lora,
                                            const ModelParameters& parameters) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < parameters.modules.size(); ++i) {
    const bool named = std::any_of(
        lora.saved.begin(), lora.saved.end(),
        [&](const std::string& end) { return ends_with(parameters.modules[i].name, end); });
    if (named && !is_within(found, parameters, i)) found.push_back(i);
  }
  return found;
}

// TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING of PEFT 0.21.
std::vector<std::string> usual_lora_targets(std::string_view model_type) {
  using Names = std::vector<std::string>;
  static const std::map<std::string_view, Names> targets{
      {"bert", {"query", "value"}},
      {"deberta-v2", {"query_proj", "value_proj"}},
      {"gemma", {"q_proj", "v_proj"}},
      {"gemma2", {"q_proj", "v_proj"}},
      {"gemma3_text", {"q_proj", "v_proj"}},
      {"gpt2", {"c_attn"}},
      {"gpt_neox", {"query_key_value"}},
      {"llama", {"q_proj", "v_proj"}},
      {"mistral", {"q_proj", "v_proj"}},
      {"mixtral", {"q_proj", "v_proj"}},
      {"mt5", {"q", "v"}},
      {"opt", {"q_proj", "v_proj"}},
      {"qwen2", {"q_proj", "v_proj"}},
      {"qwen3", {"q_proj", "v_proj"}},
      {"roberta", {"query", "value"}},
      {"t5", {"q", "v"}},
  };
  const auto found = targets.find(model_type);
  return found == targets.end() ? Names() : found->second;
}

// Seen in PEFT 0.21.2 with transformers 5.24; not so of qwen2_moe.
bool all_linear_has_experts(std::string_view model_type) {
  return model_type == "mixtral" || model_type == "qwen3_moe";
}

}  // namespace dstune
