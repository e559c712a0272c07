// The settings that the machine adds to a configuration: backend, memory limit, threads, groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/host/find_host_profile.hpp"
#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/feasibility/memory_limit.hpp"
#include "core/search/schedule/worker_info.hpp"

namespace dstune {

struct Machine {
  int workers = 0;
  int group_size = 1;        ///< data-parallel ranks per experiment
  std::string backend;       ///< "cpu", "sim"; never "auto"
  Bytes memory_limit = 0;    ///< per rank; 0: not known, in a plan for which no GPU was asked
  int threads_per_rank = 1;  ///< see RunSettings
  /// Workers of the host that has most; 0: not known, and all count as one node.
  int devices_per_node = 0;
  /// The user's, a profile that was found, or the backend's preset.
  HostOverhead host_overhead = {};
  bool shares_gpu = false;  ///< several workers train on one GPU
  /// How the memory under memory_limit is counted.
  AllocatorModel allocator = AllocatorModel::exact;
  ProductWorkspace product_workspace = {};         ///< the largest of all devices
  std::string memory_limit_origin = {};            ///< see MemoryLimit::origin
  std::vector<std::string> profile_warnings = {};  ///< see FoundProfile
  Bytes host_memory_limit = 0;                     ///< see RunSettings
  Bytes pinned_limit = 0;                          ///< see RunSettings
  Bytes drive_limit = 0;                           ///< see RunSettings
  bool is_on_host = false;                         ///< devices live in the memory of the host

  bool operator==(const Machine&) const = default;
};

/// The machine of a run.
///
/// "auto" is the first backend, in the order of the first worker's devices, that every worker can
/// use. The memory limit is memory_limit_of_run(). Every rank gets the smallest share of cores as
/// threads: the cores of a worker divided by the workers on its host.
///
/// @param workers        those that reported, at least one
/// @param alive          how many of them are alive
/// @param tuner_host     the host of rank 0
/// @param earlier        the memory limits of the run that goes on
/// @param profiles       the places where a profile is looked for if the user names none; default:
///                       nowhere
/// @throws ConfigError  if there are too few workers for a group, one cannot use the backend, one
///                      has no GPU of its own and the user has not allowed that, or the precision
///                      is open (check_open_precision())
Machine machine_of_run(const TuningConfig& config, const std::vector<WorkerInfo>& workers,
                       int alive, const std::string& tuner_host = "",
                       const EarlierLimits& earlier = {}, const ProfilePlaces& profiles = {});

/// The workers that would run a plan.
struct PlannedWorkers {
  std::optional<int> count;  ///< none: as many as a group needs, else two
  int on_largest_host = 0;   ///< 0: not known
};

/// The machine of a plan, which may be another than the one that makes the plan: its memory limit
/// is the user's.
/// @param here      the devices of this machine, of which "auto" takes the first that can be used
/// @param profiles  as in machine_of_run(), for this machine
/// @throws ConfigError  as machine_of_run() does
Machine machine_of_plan(const TuningConfig& config, const PlannedWorkers& workers,
                        const std::vector<DeviceInfo>& here, const ProfilePlaces& profiles = {});

/// `config` as it runs on `machine`: its settings are complete, with a memory limit that leaves the
/// objective's headroom, and its notes say what makes times doubtful. All other members stay as
/// they are.
/// @throws ConfigError  if the headroom leaves nothing
TuningConfig completed(TuningConfig config, const Machine& machine);

/// Warnings to read before the numbers are trusted, a line each: files that were found and are no
/// valid profiles; a plan for several hosts that are not known; a memory limit of the user's that
/// exceeds the memory, or one of a run that goes on that exceeds the free memory; GPUs that no
/// worker drives.
/// @param config   the configuration as the user gave it
/// @param workers  empty for a plan
std::vector<std::string> machine_warnings(const TuningConfig& config, const Machine& machine,
                                          const std::vector<WorkerInfo>& workers = {},
                                          const std::string& tuner_host = "");

/// A warning if all of `earlier`, the results of the run that goes on, are of groups of another
/// size: these are other experiments, though they have the same names. "" if some are not, or if
/// there are none.
std::string warning_of_other_groups(const std::vector<Record>& earlier, int group_size);

/// The names of the workers' devices for a backend, each once, sorted: "AMD EPYC 9534 64-Core
/// Processor, Intel Xeon". Times can be compared only on equal devices.
std::string device_names(const std::string& backend, const std::vector<WorkerInfo>& workers);

/// The names of the libraries that multiply matrices on the workers' devices, each once, sorted; ""
/// where none is known.
std::string library_names(const std::string& backend, const std::vector<WorkerInfo>& workers);

/// DeviceInfo::found of the workers' devices, each line once, sorted.
std::vector<std::string> libraries_found(const std::string& backend,
                                         const std::vector<WorkerInfo>& workers);

}  // namespace dstune
