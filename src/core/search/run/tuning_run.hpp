// A whole run of rank 0, from its input to the last file, on workers that the caller provides.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"
#include "core/config/command_line/command_line.hpp"
#include "core/config/tuning_config.hpp"
#include "core/device/backend.hpp"
#include "core/search/schedule/worker_info.hpp"
#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// The processes, the hardware and the terminal around a run.
struct Surroundings {
  std::string mpi;              ///< see RunIdentity::mpi
  std::string launcher_folder;  ///< see RunProcess::launcher_folder
  /// See LocalBackends::make_to_ask.
  std::function<std::unique_ptr<Backend>(const std::string& name)> make_to_ask;
  std::function<bool()> interrupted;  ///< whether the run is to end early
  /// Says why so many bytes cannot be printed; "" if they can, or if that is not known.
  std::function<std::string(Bytes)> why_cannot_print;
  std::function<void(std::string_view)> print;  ///< writes to standard output. @throws Error
  std::filesystem::path cache_folder = {};      ///< user_cache_folder(); "": nothing is kept there
};

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
