// Which messages an experiment's step sends, whatever decides it.
#pragma once

#include <vector>

#include "core/device/rates/machine_rates.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// The kinds of messages of a step, by a dry run of its own code on group rank 0, each once in the
/// order of their first; single numbers are none. Local, milliseconds. Empty if the step is not
/// modelled.
std::vector<GroupMessage> messages_of(const Experiment& experiment);

}  // namespace dstune
