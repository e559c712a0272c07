// What autograd keeps of a gathered weight.
#pragma once

#include <cstddef>

#include "core/train/tape/tape.hpp"
#include "core/train/tape/value.hpp"

namespace dstune::nn {

/// What is saved for backward by a function of torch's that is given a view of the weight, such as
/// weight.t(): the weight's memory, also when stage 3 gives the parameter another one. Empty where
/// nobody takes the memory away before. A function that is given the parameter itself saves that
/// and so nothing (docs/deepspeed-versions.md).
Value kept_by_view(const Tape& on, std::size_t weight);

}  // namespace dstune::nn
