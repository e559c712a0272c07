// Files of trainers in the place of CONFIG.json: Hugging Face's TrainingArguments as JSON, and the
// YAML of accelerate config, LLaMA-Factory and axolotl.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"

namespace dstune {

enum class TrainerKind { training_arguments, accelerate, llama_factory, axolotl };

/// What a user gave, in the form of CONFIG.json.
struct ConfigFile {
  json::object config;             ///< DeepSpeed's keys, "autotuning" and "dstune"
  std::vector<std::string> notes;  ///< where the values of a trainer's file come from
};

/// Which trainer's file this is; none: it is a DeepSpeed configuration, or nobody's.
std::optional<TrainerKind> trainer_of(const json::object& file);

/// Translates a trainer's file: values that are "auto" in the DeepSpeed file that it names are
/// filled as the trainer fills them, and what it says of the model, the lengths, checkpointing and
/// adapters goes to "dstune", where what that file itself has there wins.
///
/// What the trainer would refuse, and what would be another step altogether, are problems; what is
/// left out is a warning.
ConfigFile translate(TrainerKind kind, const json::object& file, const std::filesystem::path& path,
                     Problems& problems);

/// Reads CONFIG.json, or a trainer's file in its place; one that ends in .yaml or .yml is YAML.
/// @returns none, with a problem, if it cannot be read or is no object
std::optional<ConfigFile> read_config_file(const std::filesystem::path& path, Problems& problems);

}  // namespace dstune
