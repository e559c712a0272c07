// What an offload_optimizer.ratio below 1 comes to.
#pragma once

#include <string>

#include "core/experiment/experiment.hpp"

namespace dstune {

/// How many of its sub-groups a rank steps on the device, and how to get nearer to what was asked
/// for: "offload_optimizer.ratio 0.5 leaves 2 of a rank's 5 sub-groups on the device, since
/// DeepSpeed rounds down; a smaller sub_group_size (200 now, of 910 parameters that a rank steps)
/// gets nearer to it". "" without such a ratio.
std::string ratio_remark(const Experiment& experiment);

}  // namespace dstune
