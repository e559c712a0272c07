// Configurations at which DeepSpeed stops only in a step.
#pragma once

#include <stdexcept>

namespace dstune {

/// Thrown by a step where DeepSpeed stops with an error, or trains on with wrong values without a
/// word, and where only the step shows it. The experiment is Skipped, with what() as the reason.
class StepRefused : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace dstune
