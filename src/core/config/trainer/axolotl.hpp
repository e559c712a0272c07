// The YAML of axolotl's `axolotl train`.
#pragma once

#include "core/base/json.hpp"
#include "core/config/trainer/translation.hpp"

namespace dstune {

/// The DeepSpeed part, as of the TrainingArguments that axolotl makes; model, length,
/// checkpointing, attention, loss and LoRA go to "dstune". Training on texts alone is modelled, not
/// on preferences or rewards.
json::object translate_axolotl(Translation& file);

}  // namespace dstune
