// BERT, RoBERTa and DistilBERT: forward and backward of one micro-batch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/model/bert/bert.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"

namespace dstune::bert {

/// transformers' BertForMaskedLM or BertForSequenceClassification, as spec.task says, or the same
/// of RoBERTa or DistilBERT. It saves what docs/deepspeed-step.md lists in "What a block keeps".
/// Tokens are masked in place, and the labels of sequences are drawn, by the micro-step's seed:
/// they change with the rank and the micro-step that a sequence falls to, unless a micro-batch is
/// one sequence.
std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device);

inline constexpr Task kTasks[] = {Task::masked_lm, Task::sequence_classification};

template <Variant kin>
constexpr Family family(std::string_view model_type) {
  return {.model_type = model_type,
          .presets = [] { return presets(kin); },
          .read =
              [](const json::object& config, std::string_view pointer, Problems& problems,
                 std::vector<std::string>& warnings) {
                return read(kin, config, pointer, problems, warnings);
              },
          .parameters = parameters,
          .training_flops = training_flops,
          .make_model = make_model,
          .tasks = kTasks};
}

inline constexpr Family kBertFamily = family<Variant::bert>("bert");
inline constexpr Family kRobertaFamily = family<Variant::roberta>("roberta");
inline constexpr Family kDistilbertFamily = family<Variant::distilbert>("distilbert");

}  // namespace dstune::bert
