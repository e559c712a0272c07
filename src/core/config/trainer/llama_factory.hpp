// The YAML of LLaMA-Factory's `llamafactory-cli train`.
#pragma once

#include "core/base/json.hpp"
#include "core/config/trainer/translation.hpp"

namespace dstune {

/// The DeepSpeed part, as of TrainingArguments; model, cut-off length, checkpointing, attention and
/// LoRA go to "dstune". Supervised fine-tuning and pre-training alone are modelled.
json::object translate_llama_factory(Translation& file);

}  // namespace dstune
