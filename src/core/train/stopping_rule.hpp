// When a measurement has enough steps.
#pragma once

#include <vector>

#include "core/base/units.hpp"

namespace dstune {

/// At least `min_steps`; on while their noise is above 5 %, up to three times as many, as long as
/// they took less than half of the experiment's time limit together.
class StoppingRule {
 public:
  StoppingRule(int min_steps, Seconds experiment_timeout)
      : min_steps_(min_steps), time_limit_(experiment_timeout / 2) {}

  /// @param times  seconds of the measured steps so far
  bool is_enough(const std::vector<double>& times) const;

 private:
  int min_steps_;
  Seconds time_limit_;
};

}  // namespace dstune
