// Activations of a GPT-2's micro-batch by formula: what Gpt2 allocates is held to it.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"
#include "core/device/dtype.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::oracle {

/// Bytes that forward leaves allocated for backward, and the peak of activations + temporaries
/// within forward and backward, by formula (docs/deepspeed-step.md, "What a block keeps" and
/// "Loss").
struct ActivationMemory {
  Bytes saved = 0;
  Bytes peak = 0;
};
/// @param attention_workspace  fp32 elements of scratch, Device::attention_workspace(); 0 for a
///                             fused kernel
ActivationMemory predict_activations(const ModelSpec& model, std::int64_t micro_batch,
                                     std::int64_t sequence_length, DType dtype,
                                     std::int64_t attention_workspace = 0);

}  // namespace dstune::oracle
