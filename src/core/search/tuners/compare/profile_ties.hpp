// Which configurations are as good as the optimum, as far as the host-overhead profile is known.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// Those of `records`, which are of one run, that are a tie with `best` because of the profile
/// (hangs_on_profile()), by name, with their repetitions.
std::set<std::string> profile_ties(const std::vector<Record>& records, Metric metric,
                                   const Record& best);

/// "z1 and z2 are a tie within the preset's spread; calibrate to tell z1 from z2 (2 minutes):
/// scripts/tune.sh --calibrate"; of a profile whose uncertainty was measured "z1
/// and z2 are a tie within the profile's uncertainty". In the optimum's own stage experiments stand
/// by their names. "" if nothing hangs on the profile.
std::string profile_ties_remark(const std::vector<Record>& records, Metric metric,
                                const Record& best);

}  // namespace dstune
