#include "core/search/memory_predictor.hpp"

#include "core/train/layers/gpt2.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/step_config.hpp"

namespace dstune {

namespace {

std::int64_t attention_scratch(const Device* device, const ModelSpec& model,
                               std::int64_t micro_batch, std::int64_t sequence_length) {
  if (device == nullptr) return 0;
  return device->attention_workspace({.batch = micro_batch,
                                      .sequence = sequence_length,
                                      .heads = model.num_heads,
                                      .head_size = model.head_size(),
                                      .dropout = model.attention_dropout});
}

}  // namespace

MemoryPredictor make_memory_predictor(const Device* imitated) {
  const auto run_dry = [imitated](const Experiment& experiment, int rank) {
    return dry_run(experiment, rank, imitated).outcome;
  };
  const auto activations = [imitated](const Experiment& experiment) {
    const auto step = make_step_config(experiment.ds_config);
    const auto& settings = experiment.settings;
    return predict_activations(settings.model, step.micro_batch, settings.sequence_length,
                               step.dtype,
                               attention_scratch(imitated, settings.model, step.micro_batch,
                                                 settings.sequence_length))
        .peak;
  };
  return {run_dry, activations};
}

}  // namespace dstune
