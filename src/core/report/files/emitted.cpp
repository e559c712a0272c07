#include "core/report/files/emitted.hpp"

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/report/files/optimal.hpp"

namespace dstune {

namespace {

using Path = std::initializer_list<std::string_view>;

const json::value* find(const json::object& config, Path path) {
  const json::object* section = &config;
  const json::value* found = nullptr;
  for (const auto key : path) {
    found = section == nullptr ? nullptr : section->if_contains(key);
    if (found == nullptr) return nullptr;
    section = found->if_object();
  }
  return found;
}

// A value that is "auto" is no number.
void add(std::vector<TrainingArgument>& arguments, const json::object& config, const char* flag,
         Path path) {
  const auto* const value = find(config, path);
  if (value != nullptr && value->is_number()) arguments.push_back({flag, to_json_text(*value, 0)});
}

void add_betas(std::vector<TrainingArgument>& arguments, const json::object& config) {
  const auto* const value = find(config, {"optimizer", "params", "betas"});
  const auto* const betas = value == nullptr ? nullptr : value->if_array();
  if (betas == nullptr || betas->size() != 2) return;
  arguments.push_back({"--adam_beta1", to_json_text((*betas)[0], 0)});
  arguments.push_back({"--adam_beta2", to_json_text((*betas)[1], 0)});
}

bool is_on(const json::object& config, const char* section) {
  const auto* const enabled = find(config, {section, "enabled"});
  return enabled != nullptr && *enabled == true;
}

// The Trainer compares "enabled": where it is there as false, its flag must be off, which it is.
void add_precision(std::vector<TrainingArgument>& arguments, const json::object& config) {
  if (is_on(config, "bf16")) arguments.push_back({"--bf16", "True"});
  if (is_on(config, "fp16")) arguments.push_back({"--fp16", "True"});
}

// A YAML text in double quotes is JSON's.
std::string yaml_text(const std::string& text) { return to_json_text(json::value(text), 0); }

}  // namespace

std::vector<TrainingArgument> training_arguments(const json::object& config) {
  std::vector<TrainingArgument> arguments;
  add(arguments, config, "--per_device_train_batch_size", {"train_micro_batch_size_per_gpu"});
  add(arguments, config, "--gradient_accumulation_steps", {"gradient_accumulation_steps"});
  add_precision(arguments, config);
  add(arguments, config, "--max_grad_norm", {"gradient_clipping"});
  add(arguments, config, "--learning_rate", {"optimizer", "params", "lr"});
  add_betas(arguments, config);
  add(arguments, config, "--adam_epsilon", {"optimizer", "params", "eps"});
  add(arguments, config, "--weight_decay", {"optimizer", "params", "weight_decay"});
  add(arguments, config, "--warmup_steps", {"scheduler", "params", "warmup_num_steps"});
  return arguments;
}

// transformers 5 has these names beside newer ones, older versions have no others.
std::vector<TrainingArgument> checkpointing_arguments(
    const ActivationCheckpointing& checkpointing) {
  if (checkpointing.unit != ActivationCheckpointing::Unit::layer) return {};
  std::string settings = concat(R"({"use_reentrant":)", checkpointing.reentrant ? "true" : "false");
  if (checkpointing.count > 1) settings += concat(R"(,"every_n_layers":)", checkpointing.count);
  return {{"--gradient_checkpointing", "True"},
          {"--gradient_checkpointing_kwargs", settings + "}"}};
}

std::string training_arguments_text(const std::vector<TrainingArgument>& arguments,
                                    const std::string& config_path) {
  std::string text = concat("--deepspeed ", shell_quoted(config_path), "\n");
  for (const auto& [flag, value] : arguments) text += concat(flag, " ", shell_quoted(value), "\n");
  return text;
}

std::string accelerate_yaml(const json::object& config, const std::string& config_path,
                            const TrainingRanks& ranks, bool zero_init) {
  const auto* const stage = find(config, {"zero_optimization", "stage"});
  const bool is_stage_3 = stage != nullptr && *stage == 3;
  return concat("compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n",
                "deepspeed_config:\n  deepspeed_config_file: ", yaml_text(config_path),
                "\n  zero3_init_flag: ", is_stage_3 && zero_init ? "true" : "false",
                "\nnum_machines: ", ranks.machines, "\nnum_processes: ", ranks.processes,
                "\nmachine_rank: 0\nmain_training_function: main\nuse_cpu: false\n");
}

std::string accelerate_text(const Emission& emission) {
  emission.files.accelerate = emission.path;
  return accelerate_yaml(emission.config, emission.files.deepspeed, emission.ranks,
                         make_step_config(emission.best).zero_init);
}

std::string transformers_text(const Emission& emission) {
  auto arguments = training_arguments(emission.config);
  for (auto& argument : checkpointing_arguments(make_step_config(emission.best).checkpointing)) {
    arguments.push_back(std::move(argument));
  }
  emission.files.training_arguments = std::move(arguments);
  return training_arguments_text(emission.files.training_arguments, emission.files.deepspeed);
}

std::string emitted_text(EmittedForm form, const Emission& emission) {
  using Emit = std::string (*)(const Emission&);
#define DSTUNE_EMIT(name, ...) name##_text,
  constexpr Emit kEmit[] = {DSTUNE_EMITTED_FORMS(DSTUNE_EMIT)};
#undef DSTUNE_EMIT
  return kEmit[static_cast<std::size_t>(form)](emission);
}

}  // namespace dstune
