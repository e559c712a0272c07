// DeBERTa v2 and v3: forward and backward of one micro-batch.
#pragma once

#include <memory>

#include "core/device/device.hpp"
#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/bert/bert_model.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"

namespace dstune::deberta {

/// transformers' DebertaV2ForMaskedLM or DebertaV2ForSequenceClassification, as spec.task says.
/// Masked tokens and labels are drawn as BERT's are. Attention is eager whatever batch.attention
/// says.
std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device);

inline constexpr Family kFamily{.model_type = "deberta-v2",
                                .presets = presets,
                                .read = read,
                                .parameters = parameters,
                                .training_flops = training_flops,
                                .make_model = make_model,
                                .tasks = bert::kTasks,
                                .eager_only = true};

}  // namespace dstune::deberta
