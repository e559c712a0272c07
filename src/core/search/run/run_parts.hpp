// What a run of rank 0 is made of, from its input until its results directory is touched.
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
#include "core/report/journal/journal_reader.hpp"
#include "core/report/journal/run_identity.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/schedule/worker_info.hpp"
#include "core/search/schedule/worker_pool.hpp"
#include "core/search/space/pool.hpp"

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

struct RunParts {
  const CommandLine& options;
  TuningConfig config;  ///< the configuration as it runs on the machine
  int group_size;
  std::vector<WorkerInfo> workers;  ///< those that are not excluded
  const Surroundings& surroundings;
  std::unique_ptr<Backend> imitated;  ///< whose device the two below imitate; it may be none
  MemoryPredictor predictor;
  DryRunner dry_run;
  std::filesystem::path kept_machine;          ///< kept_machine_path()
  std::optional<EarlierJournal> earlier = {};  ///< of the run that goes on
};

/// Reads and checks the input, and changes nothing. @param ranks  the number of ranks that were
/// started, rank 0 included. @throws ConfigError
TuningConfig read_checked_config(const CommandLine& options, int ranks);

/// Completes `given` by what the workers reported, and logs what the run is about to do. Retires
/// the workers that are excluded. The references must outlive the parts.
/// @param reported  all workers that ever reported
/// @throws ConfigError  if the run cannot be made, or would need what is not modelled
RunParts make_run_parts(WorkerPool& pool, const CommandLine& options, const TuningConfig& given,
                        const std::vector<WorkerInfo>& reported, const Surroundings& surroundings);

/// What a later run must share to go on with this one's journal.
RunIdentity identity_of(const RunParts& parts);

}  // namespace dstune
