// The configurations that may be as good as the optimum because of the uncertainty of the
// host-overhead profile.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// The names of those of one run's `records` that tie with `best` because of the profile
/// (hangs_on_profile()), and of their repetitions.
std::set<std::string> profile_ties(const std::vector<Record>& records, Metric metric,
                                   const Record& best);

/// "z1 and z2 are a tie within the preset's spread; calibrate to tell z1 from z2 (3 minutes):
/// scripts/tune.sh --calibrate"; of a profile whose uncertainty was measured "z1 and z2 are a tie
/// within the profile's uncertainty". Experiments of the optimum's own stage appear by their names.
/// "" if nothing depends on the profile.
std::string profile_ties_remark(const std::vector<Record>& records, Metric metric,
                                const Record& best);

}  // namespace dstune
