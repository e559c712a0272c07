// The check of the machine before a search: who is slow, and whose messages are wrong.
#pragma once

#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/schedule/scheduler.hpp"
#include "core/search/schedule/worker_info.hpp"

namespace dstune {

struct PreflightReport {
  std::string summary;              ///< one line of what was measured; "": nothing was
  std::string table;                ///< the same as Markdown tables
  std::vector<std::string> faults;  ///< a line for each slow rank and each slow connection
  std::vector<std::string> slow_connections;  ///< those of the connections alone
};

/// The table and the faults, or that nobody is slow.
std::string preflight_text(const PreflightReport& report);

/// Whether a run with so many workers begins with a preflight: where the user wants it, unless
/// there is nothing to find because time is virtual or there is nobody to compare with.
bool wants_preflight(const TuningConfig& config, std::size_t workers);

/// Checks every group that can run at once, side by side, or finds the check in the journal.
/// Whoever looks slow is checked up to twice more, and named if found each time: the scheduler
/// avoids slow ranks, with a warning. Wrong values end the run (Scheduler::wrong_sums()).
/// @param workers  all workers of the run
PreflightReport run_preflight(const TuningConfig& config, int group_size, Scheduler& scheduler,
                              const std::vector<WorkerInfo>& workers);

}  // namespace dstune
