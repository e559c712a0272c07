// What an offloaded optimizer might do better.
#pragma once

#include <string>

#include "core/experiment/experiment.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// How many of its sub-groups a rank steps on the device, and how to get nearer to what was asked
/// for: "offload_optimizer.ratio 0.5 leaves 2 of a rank's 5 sub-groups on the device, since
/// DeepSpeed rounds down; a smaller sub_group_size (200 now, of 910 parameters that a rank steps)
/// gets nearer to it". "" without such a ratio.
std::string ratio_remark(const Experiment& experiment);

/// How much of a step's copies are sums of its micro-steps, which sums in fp32 would leave on the
/// device, and what those take there; "" where there are none, and in fp16, where DeepSpeed's fault
/// with such sums (space/known_faults.hpp) meets every training.
std::string sums_remark(const Record& best);

/// What a step writes to a node's drive, and for how long a drive lasts that may be written 600 TB;
/// "" where nothing is written.
std::string drive_remark(const Record& best);

}  // namespace dstune
