// The measurements of steps whose batches differ in length.
#pragma once

#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"

namespace dstune {

/// Real tokens are those of the sequences; padded tokens are all that are computed, padding
/// included. All numbers are those of all ranks together.
struct VaryingSteps {
  Seconds mean_step_time = 0;
  Seconds p95_step_time = 0;    ///< 95 % of the steps take no longer
  double mean_real_tokens = 0;  ///< the mean per step, as is the next
  double mean_padded_tokens = 0;
  /// Over all measured steps; Measured::tokens_per_s counts the real ones.
  double padded_tokens_per_s = 0;
  double p95_tokens_per_s = 0;  ///< real tokens; 95 % of the steps train on at least as many

  bool operator==(const VaryingSteps&) const = default;
};

/// The time and work of one step, over all ranks.
struct StepWork {
  Seconds time = 0;
  double real_tokens = 0;
  double padded_tokens = 0;
};

/// @param steps  at least one
VaryingSteps varying_steps(const std::vector<StepWork>& steps);

json::object to_json(const VaryingSteps& steps);
/// Inverse of to_json. @throws std::exception  if `object` is no VaryingSteps
VaryingSteps varying_steps_from_json(const json::object& object);

}  // namespace dstune
