// What the machine adds to a configuration: backend, memory limit, threads, groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/host/find_host_profile.hpp"
#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/schedule/worker_info.hpp"

namespace dstune {

struct Machine {
  int workers = 0;
  int group_size = 1;               ///< ranks per experiment: data-parallel ones
  std::string backend;              ///< "cpu", "sim"; never "auto"
  Bytes memory_limit = 0;           ///< per rank; 0: not known, in a plan for another machine
  int threads_per_rank = 1;         ///< of the BLAS, on the CPU
  int devices_per_node = 0;         ///< workers of the host that has most; 0: not known, one node
  HostOverhead host_overhead = {};  ///< the user's, one that was found, or the backend's preset
  bool shares_gpu = false;          ///< several workers train on one GPU
  AllocatorModel allocator = AllocatorModel::exact;  ///< likewise
  std::string memory_limit_origin = {};              ///< see MemoryLimit
  std::vector<std::string> profile_warnings = {};    ///< see FoundProfile

  bool operator==(const Machine&) const = default;
};

/// The machine of a run.
///
/// "auto" is the first backend, in the order of the first worker's devices, that every worker can
/// use. The memory limit is memory_limit_of_run(). A rank has the cores of the worker that shares
/// them with most.
///
/// @param workers        that reported, at least one
/// @param alive          of them
/// @param tuner_host     where rank 0 is
/// @param earlier_limit  of the run that goes on
/// @param profiles       where to look for a profile, if the user names none; default: nowhere
/// @throws ConfigError  if there are too few workers for a group, one cannot use the backend, or
/// one
///                      has no GPU of its own and the user has not allowed that
Machine machine_of_run(const TuningConfig& config, const std::vector<WorkerInfo>& workers,
                       int alive, const std::string& tuner_host = "",
                       std::optional<Bytes> earlier_limit = {}, const ProfilePlaces& profiles = {});

/// Who would run a plan.
struct PlannedWorkers {
  std::optional<int> count;  ///< none: as many as a group needs, or two
  int on_largest_host = 0;   ///< 0: not known
};

/// The machine of a plan, which is another one than this: nothing is known of its memory.
/// @param here      devices of this machine: "auto" is the first that can be used
/// @param profiles  as in machine_of_run: of this machine
/// @throws ConfigError  as machine_of_run
Machine machine_of_plan(const TuningConfig& config, const PlannedWorkers& workers,
                        const std::vector<DeviceInfo>& here, const ProfilePlaces& profiles = {});

/// `config` as it runs on `machine`: its settings are complete, with a memory limit that leaves the
/// objective's headroom, and what makes its times doubtful is a note; all else stays.
/// @throws ConfigError  if the headroom leaves nothing
TuningConfig completed(TuningConfig config, const Machine& machine);

/// What to know before the numbers are trusted, a line each: profiles that were found and are none;
/// a plan of several hosts that are not known; a memory limit of the user's above what there is, or
/// of a run that goes on above what is free; GPUs that nobody drives.
/// @param config   as the user gave it
/// @param workers  none for a plan
std::vector<std::string> machine_warnings(const TuningConfig& config, const Machine& machine,
                                          const std::vector<WorkerInfo>& workers = {},
                                          const std::string& tuner_host = "");

/// That `earlier`, the results of the run that goes on, are all of groups of another size: another
/// experiment, though it has the same name. "" if they are not, or there are none.
std::string warning_of_other_groups(const std::vector<Record>& earlier, int group_size);

/// The devices of a backend that the workers have, each kind once, sorted: whose times can be
/// compared. "AMD EPYC 9534 64-Core Processor, Intel Xeon".
std::string device_names(const std::string& backend, const std::vector<WorkerInfo>& workers);

/// Of the libraries that multiply on the workers' devices, likewise; "" where none is known.
std::string library_names(const std::string& backend, const std::vector<WorkerInfo>& workers);

}  // namespace dstune
