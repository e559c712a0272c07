// Configurations that can only lose.
#pragma once

#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// True if `a` needs at least as much as `b` of everything that a dry run counts: memory, bytes and
/// calls of collectives, those of them beside which nothing runs, passes, waits and host events;
/// and more of one of them. Both have the same micro-batch and accumulation.
bool is_dominated(const Measured& a, const Measured& b);

}  // namespace dstune
