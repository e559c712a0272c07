// Llama and its kin: forward and backward of one micro-batch.
#pragma once

#include <memory>

#include "core/device/device.hpp"
#include "core/model/llama/llama.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"

namespace dstune::llama {

/// Hugging Face's *ForCausalLM or *ForSequenceClassification of the spec's family. It saves what
/// docs/deepspeed-step.md lists in "What a block keeps" and "Loss".
std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device);

template <Kin kin>
Family family() {
  return {model_type_of(kin), presets<kin>, read<kin>,    parameters,
          training_flops,     make_model,   kDecoderTasks};
}

}  // namespace dstune::llama
