// OPT: forward and backward of one micro-batch.
#pragma once

#include <memory>

#include "core/device/device.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/model/opt/opt.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"

namespace dstune::opt {

/// Hugging Face's OPTForCausalLM, or OPTForSequenceClassification, without cache, as its Trainer
/// runs it.
std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device);

inline constexpr Family kFamily{"opt",          presets,    read,         parameters,
                                training_flops, make_model, kDecoderTasks};

}  // namespace dstune::opt
