// A whole run of rank 0, from its input to the last file, on workers that the caller provides.
#pragma once

#include <optional>
#include <vector>

#include "core/config/command_line/command_line.hpp"
#include "core/config/tuning_config.hpp"
#include "core/search/run/run_parts.hpp"
#include "core/search/schedule/worker_info.hpp"
#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// The checked input, or the exit code of a run whose input is wrong.
struct RunInput {
  std::optional<TuningConfig> config;
  int exit_code = 0;
};

/// Reads and checks the input, changes nothing, and logs the errors. @param ranks  the number of
/// ranks that were started, rank 0 included
RunInput read_run_input(const CommandLine& options, int ranks);

/// Tunes, and leaves the results in the results directory and on standard output. Errors go to the
/// log, and to status.json once the directory is this run's.
/// @param workers  all workers that ever reported
/// @returns the exit code
int run_tuning(const CommandLine& options, const TuningConfig& given, WorkerPool& pool,
               const std::vector<WorkerInfo>& workers, const Surroundings& surroundings);

}  // namespace dstune
