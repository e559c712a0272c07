// What ran side by side disturbed each other: the best of every stage run once more, alone.
#pragma once

#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/search/plan/candidate.hpp"

namespace dstune {

/// It ran beside an experiment of another name.
bool overlaps_another(const Record& record, const std::vector<Record>& records);

/// `stage_bests` (measured, one per stage) named "<name>_alone" and as repetitions, if the time of
/// one of them overlaps that of another of `records`; else nothing.
std::vector<Candidate> choose_finalists(const std::vector<Record>& stage_bests,
                                        const std::vector<Record>& records);

}  // namespace dstune
