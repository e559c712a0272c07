// GPT-2: forward and backward of one micro-batch.
#pragma once

#include <memory>

#include "core/device/device.hpp"
#include "core/model/gpt2/gpt2.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"

namespace dstune::gpt2 {

/// Hugging Face's GPT2LMHeadModel or GPT2ForSequenceClassification, as spec.task says, without
/// cache, as its Trainer runs it. It saves what docs/deepspeed-step.md lists in "What a block
/// keeps" and "Loss".
std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device);

inline constexpr Family kFamily{"gpt2",         presets,    read,         parameters,
                                training_flops, make_model, kDecoderTasks};

}  // namespace dstune::gpt2
