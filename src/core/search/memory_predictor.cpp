#include "core/search/memory_predictor.hpp"

#include "core/train/layers/gpt2.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/step_config.hpp"

namespace dstune {

MemoryPredictor make_memory_predictor() {
  const auto run_dry = [](const Experiment& experiment, int rank) {
    return dry_run(experiment, rank).outcome;
  };
  const auto activations = [](const Experiment& experiment) {
    const auto step = make_step_config(experiment.ds_config);
    const auto& settings = experiment.settings;
    return predict_activations(settings.model, step.micro_batch, settings.sequence_length,
                               step.dtype)
        .peak;
  };
  return {run_dry, activations};
}

}  // namespace dstune
