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
///
/// Either go on until they took `least_time` together, but not beyond half of the time limit.
///
/// Steps that differ by noise end early if each of the first kRacedSteps took longer than
/// `give_up_above`: a single slow one says nothing.
class StoppingRule {
 public:
  static constexpr int kRacedSteps = 2;

  /// @param give_up_above  seconds of a step; 0: nothing ends early
  /// @param least_time     of all measured steps together
  StoppingRule(int min_steps, Seconds experiment_timeout,
               StepsDiffer differ = StepsDiffer::by_noise, Seconds give_up_above = 0,
               Seconds least_time = 0)
      : min_steps_(min_steps),
        time_limit_(experiment_timeout / 2),
        differ_(differ),
        give_up_above_(give_up_above),
        least_time_(least_time) {}

  /// Whether it is known without a look at the times that more than `steps` are needed, so that
  /// ranks need not ask each other.
  bool needs_more_than(int steps) const;
  /// @param times  seconds of the measured steps so far
  /// @param spent  seconds that they really took, without micro-steps that were left out
  bool is_enough(const std::vector<double>& times, Seconds spent) const;

 private:
  bool may_give_up_after(int steps) const;

  int min_steps_;
  Seconds time_limit_;
  StepsDiffer differ_;
  Seconds give_up_above_;
  Seconds least_time_;
};

}  // namespace dstune
