// What steps might truly take: a table's times, changed in ways that the predictor does not model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "bench/replay.hpp"
#include "core/experiment/step_config.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune::bench {

/// A configuration of a table, as a truth sees it.
struct Case {
  StepConfig step;
  StepTime physics;         ///< by the true rates
  Seconds measured = 0;     ///< the table's time
  double memory_share = 0;  ///< the peak, as a part of the limit

  /// The part of the time that physics gives to arithmetic of the model.
  double compute_share() const;
  double communication_share() const;
};

/// A truth by name: what it multiplies a configuration's time with. A new one is a row in
/// truths.cpp.
struct Truth {
  std::string_view name;
  std::function<double(const Case& one)> factor;
};
std::span<const Truth> truths();

/// Truths that are drawn by a seed.
struct DrawnTruth {
  std::string_view name;
  std::function<std::vector<double>(const std::vector<Case>& cases, std::uint64_t seed)> factors;
};
std::span<const DrawnTruth> drawn_truths();

}  // namespace dstune::bench
