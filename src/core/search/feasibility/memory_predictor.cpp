#include "core/search/feasibility/memory_predictor.hpp"

#include "core/train/run_experiment.hpp"

namespace dstune {

MemoryPredictor make_memory_predictor(const Device* imitated) {
  return [imitated](const Experiment& experiment, int rank) {
    return dry_run(experiment, rank, imitated).outcome;
  };
}

}  // namespace dstune
