// A few optimizer steps of a tiny GPT-2 on ranks that are threads: what the engines are held to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/training_step.hpp"
#include "tests/support/test_backend.hpp"

namespace dstune::test {

/// GPT-2 of 4,248 parameters whose sizes hardly ever divide by the ranks: h = 12, 3 heads, 2
/// layers, 37 words, sequences of 7.
RunSettings tiny_settings();

/// What a run leaves behind.
struct TrainingRun {
  std::vector<double> losses;                  ///< per step, mean over the ranks
  std::vector<double> norms;                   ///< per step, global, before clipping
  std::vector<std::vector<float>> parameters;  ///< fp32 values by registration index, at the end
};

/// What a rank has while run_training() runs.
struct TrainingRank {
  int rank;
  Device& device;
  Collectives& collectives;
  TrainingStep& step;

  /// All parameters, one tensor after the other; collective.
  std::vector<float> parameters();
};

/// Sets up the step of `config` on `ranks` threads and runs `body` on each.
void on_training_ranks(const StepConfig& config, int ranks,
                       const std::function<void(TrainingRank& own)>& body,
                       const RunSettings& settings = tiny_settings(),
                       const MakeBackend& make_backend = make_test_backend);

/// `steps` optimizer steps; checks that all ranks have the same norms and parameters.
/// @throws std::runtime_error  if a step overflows or ranks differ
TrainingRun run_training(const StepConfig& config, int ranks, int steps,
                         const RunSettings& settings = tiny_settings(),
                         const MakeBackend& make_backend = make_test_backend);
/// Likewise with a DeepSpeed JSON.
inline TrainingRun run_training(const json::object& ds_config, int ranks, int steps) {
  return run_training(make_step_config(ds_config), ranks, steps);
}

/// One rank on the CPU, whatever the backend under test: the reference.
TrainingRun run_reference(const StepConfig& config, int steps);
inline TrainingRun run_reference(const json::object& ds_config, int steps) {
  return run_reference(make_step_config(ds_config), steps);
}

/// The largest difference of two tensors over the largest magnitude of `expected`, of all tensors.
double largest_difference(const TrainingRun& actual, const TrainingRun& expected);

/// The largest relative difference of two lists of positive numbers.
double largest_difference(const std::vector<double>& actual, const std::vector<double>& expected);

}  // namespace dstune::test
