// transformers.TrainingArguments as JSON, the result of to_json_string() or a file for
// HfArgumentParser; TRL's SFTConfig is one.
#pragma once

#include "core/base/json.hpp"
#include "core/config/trainer/integration.hpp"
#include "core/config/trainer/translation.hpp"

namespace dstune {

/// The DeepSpeed part; the rest is set in the section "dstune" of `file`.
json::object translate_training_arguments(Translation& file);

/// What every program with TrainingArguments has: the DeepSpeed file with its "auto" values filled,
/// or without one the arguments alone; Liger's loss; and what of a step is not modelled.
json::object translate_trainer_part(const TrainerArguments& arguments, Translation& file);

/// Adds a fault if `key` names an optimizer that is not modelled, and the DeepSpeed part has none,
/// which would win.
void check_optimizer(std::string_view key, const json::object& deepspeed, Translation& file);

/// Sets activation checkpointing, if it is on.
/// @param reentrant  what holds where `kwargs` does not say it
void set_checkpointing_of(bool is_on, const json::value* kwargs, bool reentrant,
                          std::string_view from, Translation& file);

/// Sets `dstune.attention` from transformers' `attn_implementation`, unless that is absent.
void set_attention(std::string_view key, Translation& file);

/// The keys of TrainingArguments that change nothing in a step.
std::span<const std::string_view> trainer_keys_without_effect();

}  // namespace dstune
