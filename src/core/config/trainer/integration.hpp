// What the integrations of transformers and accelerate make of a DeepSpeed configuration.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/json.hpp"
#include "core/config/trainer/translation.hpp"

namespace dstune {

/// What transformers.TrainingArguments says to DeepSpeed, with its defaults.
struct TrainerArguments {
  std::string_view micro_batch_key = "per_device_train_batch_size";  ///< the name in the file
  std::int64_t micro_batch = 8;
  std::int64_t accumulation_steps = 1;
  double max_grad_norm = 1;
  double learning_rate = 5e-5;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  double weight_decay = 0;
  bool fp16 = false;
  bool bf16 = false;
  bool fp16_full_eval = false;
  bool bf16_full_eval = false;
  bool save_on_each_node = false;
  std::string_view fp16_key = "fp16";  ///< the key that says so
  std::string_view bf16_key = "bf16";  ///< likewise
};

/// Reads the numbers among them but the micro-batch, by their names in TrainingArguments.
TrainerArguments read_trainer_numbers(Translation& file);

/// Reads all of them by their names in TrainingArguments.
TrainerArguments read_trainer_arguments(Translation& file);

/// Replaces "auto" by what the arguments say, as HfTrainerDeepSpeedConfig.trainer_config_process()
/// does, and enables the precision as accelerate's plugin does. Sizes that depend on the model stay
/// "auto", and so does train_batch_size, since the number of ranks is not known here.
///
/// A value that the arguments contradict is a fault of `file`: the Trainer refuses to start.
void fill_as_trainer(const TrainerArguments& arguments, json::object& deepspeed, Translation& file);

/// Enables `precision`, as DeepSpeedPlugin.set_mixed_precision() of accelerate does.
/// @param precision  "no", "fp16" or "bf16"
/// @param key  of `file`, which says so: a fault if the DeepSpeed part has the other one
void set_mixed_precision(std::string_view precision, std::string_view key, json::object& deepspeed,
                         Translation& file);

/// The member that a dotted path names; nullptr if there is none.
json::value* find_in(json::object& deepspeed, std::string_view dotted);

}  // namespace dstune
