// One whole step of the optimum, where its steps were computed from some of their micro-steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/schedule/scheduler.hpp"

namespace dstune {

/// The step time of `best` was computed (Measured::micro_steps_run): runs one step of it with every
/// micro-step and, if that took longer or less than noise explains, one more. Runs nothing if the
/// computed step is longer than half of an experiment's time limit, if the time budget has no room
/// for it, or if too few workers are left.
/// @param best     the optimum of `records`
/// @param records  all that were measured in the search
/// @returns what is said of it beside the result; none if every micro-step ran anyway
std::optional<std::string> check_whole_step(const TuningConfig& config, const Record& best,
                                            const std::vector<Record>& records,
                                            Scheduler& scheduler);

}  // namespace dstune
