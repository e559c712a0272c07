// The parameters of a model of which not everything is trained.
#pragma once

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// `base` with what spec.fine_tuning says: tensors frozen, or, with LoRA, as PEFT's
/// get_peft_model() leaves them: names, order, which are trained, and modules whose forward runs.
/// A module with adapters (lora.Linear) holds base_layer, lora_dropout, lora_A and lora_B; of a
/// module to save the frozen original, which no forward runs, comes before the copy that is
/// trained. The root stands for PeftModel around it, too. Left out are ModulesToSaveWrapper around
/// a copy, which has no parameters of its own, and LoraModel, which PEFT calls if a task is named.
///
/// lora_B starts at 0. lora_A has the variance of PEFT's uniform numbers, 1 / (3 in), but is normal
/// as all weights are.
ModelParameters fine_tuned(ModelParameters base, const ModelSpec& spec);

}  // namespace dstune
