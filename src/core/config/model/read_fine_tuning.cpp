#include "core/config/model/read_fine_tuning.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/pattern.hpp"
#include "core/base/text.hpp"
#include "core/model/lora_targets.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr const char* kTrainable = "/dstune/trainable";
constexpr const char* kLora = "/dstune/lora";
constexpr std::int64_t kLargestRank = 1'000'000;

constexpr KeyRule kLoraRules[] = {
    integer("r", 1, kLargestRank),
    above("lora_alpha", 0),
    fraction_below_one("lora_dropout"),
    any("target_modules"),  // these three by hand: a text or a list
    any("exclude_modules"),
    any("layers_to_transform"),
    texts("modules_to_save"),
    choice("bias", "none|all|lora_only"),
    boolean("use_rslora"),
    boolean("fan_in_fan_out"),  // PEFT corrects it: it tells merged weights' layout
};
constexpr Section kLoraSection{.rules = kLoraRules};

// The names of tensors, and the globs of whole modules.
std::vector<std::string> likely_patterns(const ModelParameters& parameters) {
  std::vector<std::string> names;
  for (const ParameterSpec& tensor : parameters.tensors) names.push_back(tensor.name);
  for (const ModuleSpec& module : parameters.modules) names.push_back(module.name + ".*");
  return names;
}

void check_pattern(const std::string& pattern, const ModelParameters& parameters,
                   const std::string& pointer, Problems& problems) {
  for (const ParameterSpec& tensor : parameters.tensors) {
    if (matches_glob(pattern, tensor.name)) return;
  }
  const auto near = suggestion(pattern, likely_patterns(parameters));
  problems.add(pointer, concat("is ", in_quotes(pattern), ", which is the name of no parameter",
                               near, near.empty() ? "; accepted: " : " accepted: ",
                               "shell patterns of whole names, such as ",
                               in_quotes(parameters.tensors.front().name), " or \"*.bias\""));
}

/// A text, or a list of strings that are not empty; nothing, and a problem, if it is neither.
std::optional<std::vector<std::string>> texts_of(const json::value& value,
                                                 const std::string& pointer, Problems& problems) {
  const bool is_one = value.is_string() && !value.get_string().empty();
  if (is_one) return std::vector{json::value_to<std::string>(value)};
  const auto checked = check_value(value, texts(""), pointer, problems);
  if (!checked) return std::nullopt;
  return json::value_to<std::vector<std::string>>(*checked);
}

void read_trainable(const json::value& value, const ModelParameters& parameters, ModelSpec& model,
                    Problems& problems) {
  const auto patterns = texts_of(value, kTrainable, problems);
  if (!patterns) return;
  if (patterns->empty()) {
    problems.add(kTrainable,
                 "is an empty list, which would train nothing; accepted: patterns of "
                 "parameter names, or no such key: all are trained");
  }
  for (std::size_t i = 0; i < patterns->size(); ++i) {
    const std::string pointer = value.is_array() ? child(kTrainable, i) : std::string(kTrainable);
    check_pattern((*patterns)[i], parameters, pointer, problems);
  }
  model.fine_tuning.trainable = *patterns;
}

/// Reads a text as a regular expression of whole names, a list as names or their ends.
void read_names(const SectionReader& lora, const char* key, std::vector<std::string>& list,
                std::string& pattern, Problems& problems) {
  const auto* value = lora.find(key);
  if (value == nullptr) return;
  const std::string pointer = child(kLora, key);
  if (!value->is_string()) {
    list = texts_of(*value, pointer, problems).value_or(list);
    return;
  }
  pattern = json::value_to<std::string>(*value);
  if (lower(pattern) == LoraSettings::kAllLinear) pattern = LoraSettings::kAllLinear;
  try {
    const Pattern tried(pattern);
  } catch (const std::invalid_argument& fault) {
    problems.add(pointer, concat("is ", in_quotes(pattern),
                                 ", which is not a supported regular expression (", fault.what(),
                                 "); accepted: one of RE2's syntax, a list of names, or "
                                 "\"all-linear\""));
    pattern.clear();
  }
}

void read_layers(const SectionReader& lora, LoraSettings& settings, Problems& problems) {
  const auto* value = lora.find("layers_to_transform");
  if (value == nullptr) return;
  const std::string pointer = child(kLora, "layers_to_transform");
  const json::array list = value->is_array() ? value->get_array() : json::array{*value};
  for (const json::value& entry : list) {
    const auto layer = as_integer(entry);
    if (!layer || *layer < 0) {
      problems.add(pointer, concat("is or has ", describe(entry),
                                   "; accepted: the number of a layer from 0 on, or a list"));
      return;
    }
    settings.layers.push_back(*layer);
  }
  if (!settings.target_pattern.empty()) {
    problems.add(pointer,
                 concat("is given with \"target_modules\": ", in_quotes(settings.target_pattern),
                        ", which PEFT refuses; accepted: with a list of names"));
  }
}

std::vector<std::string> linear_names(const ModelParameters& parameters, Task task) {
  const auto output = output_embeddings(parameters, task);
  std::set<std::string> names;
  for (std::size_t i = 0; i < parameters.modules.size(); ++i) {
    const ModuleSpec& module = parameters.modules[i];
    if (is_linear(module) && i != output) names.insert(split(module.name, '.').back());
  }
  return {names.begin(), names.end()};
}

std::string linear_list(const ModelParameters& parameters, Task task) {
  std::vector<std::string> names = linear_names(parameters, task);
  for (auto& name : names) name = in_quotes(name);
  return join(names, ", ");
}

// What target_modules may be, besides names of modules.
std::string other_targets(const ModelSpec& model) {
  return all_linear_has_experts(model.family) ? ", or a regular expression"
                                              : ", \"all-linear\", or a regular expression";
}

// PEFT takes no notice of names that match nothing as long as others do; lists for many kinds of
// models are common.
void check_targets(const LoraSettings& settings, const ModelParameters& parameters,
                   const ModelSpec& model, Problems& problems) {
  const std::string pointer = child(kLora, "target_modules");
  const auto targets = find_lora_targets(settings, parameters, model.task);
  const auto output = output_embeddings(parameters, model.task);
  for (const std::size_t target : targets) {
    const ModuleSpec& module = parameters.modules[target];
    if (is_linear(module) && target != output) continue;
    problems.add(pointer, concat("has ", in_quotes(module.name), ", a ", module.class_name,
                                 is_linear(module) ? " that is the output layer" : "",
                                 ", where LoRA is not modelled; accepted: ",
                                 linear_list(parameters, model.task)));
    return;
  }
  if (!targets.empty()) return;
  std::string near;
  for (const auto& name : settings.targets) {
    if (near.empty()) near = suggestion(name, linear_names(parameters, model.task));
  }
  problems.add(pointer, concat("matches no module of this model", near,
                               near.empty() ? "; accepted: " : " accepted: ",
                               linear_list(parameters, model.task), other_targets(model)));
}

bool is_tied(const ModelParameters& parameters, std::size_t tensor) {
  const auto uses = std::count_if(
      parameters.modules.begin(), parameters.modules.end(), [&](const ModuleSpec& module) {
        return std::count(module.parameters.begin(), module.parameters.end(), tensor) > 0;
      });
  return uses > 1;
}

void check_saved(const LoraSettings& settings, const ModelParameters& parameters,
                 Problems& problems) {
  for (const std::size_t module : find_saved_modules(settings, parameters)) {
    for (const std::size_t tensor : parameters.tensors_within(module)) {
      if (!is_tied(parameters, tensor)) continue;
      problems.add(child(kLora, "modules_to_save"),
                   concat("has ", in_quotes(parameters.modules[module].name),
                          ", whose weight is tied to another module's, which is not modelled; "
                          "accepted: modules with weights of their own"));
      return;
    }
  }
}

void check_saved_names(const SectionReader& lora, const LoraSettings& settings,
                       const ModelParameters& parameters, Problems& problems) {
  std::vector<std::string> named;
  lora.read("modules_to_save", named);
  std::set<std::string> known;
  for (const ModuleSpec& module : parameters.modules) {
    if (!module.name.empty()) known.insert(split(module.name, '.').back());
  }
  LoraSettings one;
  for (const std::string& name : named) {
    one.saved = {name};
    if (!name.empty() && !find_saved_modules(one, parameters).empty()) continue;
    const auto near = suggestion(name, {known.begin(), known.end()});
    problems.add(
        child(kLora, "modules_to_save"),
        concat("has ", in_quotes(name), ", the name of no module", near,
               near.empty() ? "; accepted: " : " accepted: ", "names of modules, or their ends"));
    return;
  }
  check_saved(settings, parameters, problems);
}

LoraSettings settings_of(const SectionReader& lora, const ModelSpec& model, Problems& problems) {
  LoraSettings settings;
  lora.read("r", settings.rank);
  lora.read("lora_alpha", settings.alpha);
  lora.read("lora_dropout", settings.dropout);
  lora.read("use_rslora", settings.rank_stabilized);
  std::string bias = "none";
  lora.read("bias", bias);
  if (bias == "all") settings.bias = LoraSettings::Bias::all;
  if (bias == "lora_only") settings.bias = LoraSettings::Bias::lora_only;
  lora.read("modules_to_save", settings.saved);
  if (model.task == Task::sequence_classification) {  // as PeftModelForSequenceClassification does
    settings.saved.insert(settings.saved.end(), {"classifier", "score"});
  }
  read_names(lora, "target_modules", settings.targets, settings.target_pattern, problems);
  read_names(lora, "exclude_modules", settings.excluded, settings.excluded_pattern, problems);
  if (lora.find("target_modules") == nullptr) settings.targets = usual_lora_targets(model.family);
  read_layers(lora, settings, problems);
  return settings;
}

void read_lora(const json::value& value, const ModelParameters& parameters, ModelSpec& model,
               Problems& problems) {
  const std::size_t before = problems.count();
  const SectionReader lora(value, kLoraSection, kLora, problems);
  const LoraSettings settings = settings_of(lora, model, problems);
  if (settings.targets.empty() && settings.target_pattern.empty()) {
    if (problems.count() == before) {
      problems.add(child(kLora, "target_modules"),
                   concat("is missing, and PEFT has no default for ", in_quotes(model.family),
                          "; accepted: names of modules (", linear_list(parameters, model.task),
                          ")", other_targets(model)));
    }
    return;
  }
  if (settings.target_pattern == LoraSettings::kAllLinear && all_linear_has_experts(model.family)) {
    problems.add(
        child(kLora, "target_modules"),
        concat("is \"all-linear\", with which PEFT adapts the experts and routers of ",
               in_quotes(model.family), " too, which is not modelled; accepted: names of modules (",
               linear_list(parameters, model.task), ")"));
  }
  if (problems.count() > before) return;
  check_targets(settings, parameters, model, problems);
  check_saved_names(lora, settings, parameters, problems);
  model.fine_tuning.lora = settings;
}

}  // namespace

void read_fine_tuning(const SectionReader& dstune, ModelSpec& model, Problems& problems) {
  const auto* trainable = dstune.find("trainable");
  const auto* lora = dstune.find("lora");
  if (trainable == nullptr && lora == nullptr) return;
  if (trainable != nullptr && lora != nullptr) {
    problems.add(kTrainable,
                 "is given with \"lora\", which freezes all but its adapters; accepted: "
                 "one of the two (\"lora\" has \"modules_to_save\" and \"bias\")");
    return;
  }
  const ModelParameters parameters = make_model_parameters(model);
  if (trainable != nullptr) read_trainable(*trainable, parameters, model, problems);
  if (lora != nullptr) read_lora(*lora, parameters, model, problems);
}

}  // namespace dstune
