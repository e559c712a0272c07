// Which messages an experiment's step sends, whatever decides that.
#pragma once

#include <vector>

#include "core/device/rates/machine_rates.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// The kinds of messages of a step, found by a dry run of the step's own code on group rank 0, each
/// once in the order of its first message; single numbers are left out. Local; takes milliseconds.
/// Empty if the step is not modelled.
std::vector<GroupMessage> messages_of(const Experiment& experiment);

}  // namespace dstune
