// When a measurement has enough steps.
#pragma once

#include <vector>

#include "core/base/units.hpp"

namespace dstune {

/// The reasons why steps differ.
enum class StepsDiffer {
  by_noise,   ///< all steps do the same
  by_nature,  ///< their batches differ in length
};

/// Decides when to stop. At least `min_steps` are measured. Steps that differ by noise go on while
/// their noise is above 5 %, up to three times as many, as long as together they took less than
/// half of the experiment's time limit. The mean is sought of steps that differ by nature: at least
/// 8 are measured, and more while the standard error of their mean is above 3 %, up to twenty times
/// `min_steps` (docs/decisions/lengths.md).
class StoppingRule {
 public:
  StoppingRule(int min_steps, Seconds experiment_timeout,
               StepsDiffer differ = StepsDiffer::by_noise)
      : min_steps_(min_steps), time_limit_(experiment_timeout / 2), differ_(differ) {}

  /// @param times  seconds of the measured steps so far
  bool is_enough(const std::vector<double>& times) const;

 private:
  int min_steps_;
  Seconds time_limit_;
  StepsDiffer differ_;
};

}  // namespace dstune
