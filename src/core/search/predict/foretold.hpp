// What the measurements of an earlier run say of steps that only are planned.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/experiment/experiment.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

struct Foretold {
  std::string origin;  ///< "48 measurements in autotuning_results"
  /// By experiment; none where the step is not modelled.
  std::vector<std::optional<Prediction>> steps;
};

/// Predicts the steps of `experiments`, all of groups of as many ranks, from the journal in the
/// configuration's results directory, which is only read: their names need not be in it, nor their
/// settings, nor their model. Takes milliseconds per experiment.
/// @returns none if there is no journal of a run on the same backend, or if it holds no measurement
///          of groups of as many ranks. What is damaged is left out, and warned of
std::optional<Foretold> foretell(const TuningConfig& config,
                                 const std::vector<Experiment>& experiments);

/// "812.0 ms, with 90 % between 760.0 ms and 868.0 ms".
std::string foretold_text(const Prediction& prediction);

}  // namespace dstune
