// The optimum in other programs' forms: an Accelerate YAML, and flags of Hugging Face's Trainer.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/config/command_line/output_forms.hpp"
#include "core/experiment/activation_checkpointing.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// One flag of Hugging Face's TrainingArguments: "--learning_rate", "0.0003".
struct TrainingArgument {
  std::string flag;
  std::string value;

  bool operator==(const TrainingArgument&) const = default;
};

/// The arguments that the Trainer compares with the DeepSpeed JSON and refuses where they differ:
/// batch sizes, precision, clipping, and the optimizer's and the scheduler's values. A value that
/// `config` lacks, or has as "auto", is the Trainer's own: no flag.
/// @param config  of the optimum (optimal_config)
std::vector<TrainingArgument> training_arguments(const json::object& config);

/// The arguments that switch activation checkpointing on, where the Trainer has it: layer by layer.
std::vector<TrainingArgument> checkpointing_arguments(const ActivationCheckpointing& checkpointing);

/// The flags with "--deepspeed `config_path`" before them, one a line, each value quoted as a shell
/// reads it: to be pasted, or for "xargs -a FILE torchrun train.py".
std::string training_arguments_text(const std::vector<TrainingArgument>& arguments,
                                    const std::string& config_path);

/// The processes that train.
struct TrainingRanks {
  int processes = 1;  ///< of all machines
  int machines = 1;
};

/// For `accelerate launch --config_file`: the DeepSpeed JSON at `config_path` on `ranks`. Nothing
/// that Accelerate refuses beside a deepspeed_config_file.
/// @param zero_init  whether a model of stage 3 is made under deepspeed.zero.Init
std::string accelerate_yaml(const json::object& config, const std::string& config_path,
                            const TrainingRanks& ranks, bool zero_init = true);

/// Where the optimum lies, by absolute paths, and what else the training command gets of it.
struct OptimumFiles {
  std::string deepspeed;                                  ///< ds_config_optimal.json
  std::string accelerate = {};                            ///< the Accelerate YAML, or ""
  std::vector<TrainingArgument> training_arguments = {};  ///< for Hugging Face's Trainer
};

/// What a form is made of.
struct Emission {
  const json::object& config;  ///< optimal_config()
  const Experiment& best;
  TrainingRanks ranks;
  std::string path;     ///< absolute, of the file that is written
  OptimumFiles& files;  ///< gets what the training command needs of the form
};

/// The text of the file of each form of output_forms.hpp.
#define DSTUNE_DECLARE_FORM(name, ...) std::string name##_text(const Emission& emission);
DSTUNE_EMITTED_FORMS(DSTUNE_DECLARE_FORM)
#undef DSTUNE_DECLARE_FORM

std::string emitted_text(EmittedForm form, const Emission& emission);

}  // namespace dstune
