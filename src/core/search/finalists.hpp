// What ran side by side disturbed each other: the best of every stage run once more, alone.
#pragma once

#include <vector>

#include "core/report/journal.hpp"
#include "core/train/experiment.hpp"

namespace dstune {

/// `stage_bests` (measured, one per stage) named "<name>_alone" and with another key(), if the time
/// of one of them overlaps that of another of `records`; else nothing.
std::vector<Experiment> choose_finalists(const std::vector<Record>& stage_bests,
                                         const std::vector<Record>& records);

}  // namespace dstune
