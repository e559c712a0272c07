#include "core/search/feasibility/machine.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/device/backend_list.hpp"
#include "core/experiment/step_config.hpp"
#include "core/search/feasibility/agreement.hpp"
#include "core/search/feasibility/gpus.hpp"
#include "core/search/feasibility/memory_limit.hpp"
#include "core/search/feasibility/memory_room.hpp"
#include "core/search/feasibility/precision.hpp"

namespace dstune {
namespace {

// The fewest workers of a group: with one there is nothing to shard.
constexpr int kFewestWorkers = 2;

/// Why `devices` has none that the backend can use; "" if it has one.
std::string why_not(const std::vector<DeviceInfo>& devices, const std::string& backend) {
  const DeviceInfo* device = find_device(devices, backend);
  return device == nullptr ? "there is no such device" : device->unusable;
}

/// A place where the backend must be usable: a worker, or this machine.
struct Place {
  std::string name;
  const std::vector<DeviceInfo>* devices;
};

bool can_all_use(const std::vector<Place>& places, const std::string& backend) {
  return std::all_of(places.begin(), places.end(),
                     [&](const Place& place) { return why_not(*place.devices, backend).empty(); });
}

std::string choose_backend(const TuningConfig& config, const std::vector<Place>& places) {
  const std::string& wanted = config.settings.backend;
  if (wanted != "auto") {
    for (const Place& place : places) {
      const std::string reason = why_not(*place.devices, wanted);
      if (reason.empty()) continue;
      throw ConfigError(config.source,
                        {{"/dstune/backend",
                          concat("is ", wanted, ", which ", place.name, " cannot use: ", reason)}});
    }
    return wanted;
  }
  for (const DeviceInfo& device : *places.front().devices) {
    if (can_all_use(places, device.backend)) return device.backend;
  }
  throw ConfigError(config.source,
                    {{"/dstune/backend", "is auto, but no backend can be used by all workers"}});
}

std::vector<Place> places_of(const std::vector<WorkerInfo>& workers) {
  std::vector<Place> places;
  places.reserve(workers.size());
  for (const auto& worker : workers) {
    places.push_back({concat("rank ", worker.rank, " on ", worker.host), &worker.devices});
  }
  return places;
}

/// Whether several workers share a GPU.
/// @throws ConfigError  if they share one and may not
bool share_gpus(const TuningConfig& config, const std::string& backend,
                const std::vector<WorkerInfo>& workers, const std::string& tuner_host) {
  if (find_device(workers.front().devices, backend)->id.empty()) return false;
  if (!config.settings.share_gpu) check_gpus(workers, tuner_host);
  return std::any_of(workers.begin(), workers.end(), [&](const WorkerInfo& worker) {
    return workers_on_gpu_of(worker, workers) > 1;
  });
}

int threads_per_rank(const std::vector<WorkerInfo>& workers) {
  const auto share = [](const WorkerInfo& worker) {
    return std::max(1, worker.cores / std::max(worker.workers_on_host, 1));
  };
  int least = share(workers.front());
  for (const auto& worker : workers) least = std::min(least, share(worker));
  return least;
}

int devices_per_node(const std::vector<WorkerInfo>& workers) {
  int most = 0;
  for (const auto& worker : workers) most = std::max(most, worker.workers_on_host);
  return most;
}

/// Sets the host overhead of `machine`, whose other members are complete: the user's; else the
/// profile that was measured with as many ranks, or nearly as many, as an experiment has on a host,
/// and as many threads;
/// else the preset.
void set_host_overhead(Machine& machine, const TuningConfig& config,
                       const std::vector<DeviceInfo>& devices, const ProfilePlaces& profiles) {
  if (config.host_overhead) {
    machine.host_overhead = *config.host_overhead;
    return;
  }
  const DeviceInfo& device = *find_device(devices, machine.backend);
  const int on_a_host = machine.devices_per_node == 0
                            ? machine.group_size
                            : std::min(machine.group_size, machine.devices_per_node);
  FoundProfile found = find_host_profile(profiles, machine.backend, device.name, on_a_host,
                                         machine.threads_per_rank);
  machine.profile_warnings = std::move(found.warnings);
  const auto overhead =
      found.overhead ? std::move(found.overhead) : host_overhead_preset(device.host_overhead);
  if (!overhead) {
    throw Error(concat("worker's host overhead ", device.host_overhead,
                       " is not a preset of this program"));
  }
  machine.host_overhead = *overhead;
}

[[noreturn]] void throw_group_size(const TuningConfig& config, int group_size,
                                   const std::string& why) {
  throw ConfigError(config.source,
                    {{"/dstune/ranks_per_experiment", concat("is ", group_size, ", but ", why)}});
}

/// The number of workers of an experiment on `gpus`: GPUs that share a model count as one.
int data_parallel_ranks(const TuningConfig& config, int gpus) {
  const int mp_size = config.autotuning.mp_size;
  if (gpus % mp_size == 0) return gpus / mp_size;
  throw ConfigError(config.source, {{"/autotuning/mp_size",
                                     concat("is ", mp_size, ", which does not divide the ", gpus,
                                            " ranks of an experiment (ranks_per_experiment)")}});
}

/// @throws ConfigError  if the headroom leaves nothing
Bytes less_headroom(const TuningConfig& config, Bytes limit) {
  const Bytes headroom = config.objective.memory_headroom;
  if (limit == 0 || headroom < limit) return limit == 0 ? 0 : limit - headroom;
  throw ConfigError(config.source,
                    {{"/dstune/objective/memory_headroom",
                      concat("is ", format_bytes(headroom),
                             "; accepted: less than the memory limit, ", format_bytes(limit))}});
}

/// The values of `text` of the workers' devices for a backend, each once, sorted.
std::set<std::string> texts_of(const std::string& backend, const std::vector<WorkerInfo>& workers,
                               std::string DeviceInfo::*text) {
  std::set<std::string> texts;
  for (const auto& worker : workers) {
    const DeviceInfo* device = find_device(worker.devices, backend);
    if (device != nullptr) texts.insert(device->*text);
  }
  return texts;
}

ProductWorkspace largest(const ProductWorkspace& one, const ProductWorkspace& other) {
  return {std::max(one.of_products, other.of_products), std::max(one.of_biases, other.of_biases)};
}

ProductWorkspace workspace_on(const std::string& backend, const std::vector<DeviceInfo>& devices) {
  const DeviceInfo* device = find_device(devices, backend);
  return device == nullptr ? ProductWorkspace{} : device->product_workspace;
}

/// Sets what the user allows of a node beside its memory.
void limit_node(Machine& machine, const TuningConfig& config, int on_each_host) {
  machine.pinned_limit = part_of_node(config.pinned_limit, std::max(on_each_host, 1));
  machine.drive_limit = part_of_node(config.drive_limit, std::max(on_each_host, 1));
}

}  // namespace

Machine machine_of_run(const TuningConfig& config, const std::vector<WorkerInfo>& workers,
                       int alive, const std::string& tuner_host, const EarlierLimits& earlier,
                       const ProfilePlaces& profiles) {
  Machine machine;
  machine.workers = alive;
  machine.group_size = data_parallel_ranks(config, config.ranks_per_experiment.value_or(alive));
  if (machine.group_size < 1 || machine.group_size > alive) {
    throw_group_size(config, machine.group_size,
                     concat("mpirun started ", alive, " workers (rank 0 only tunes); start ",
                            machine.group_size + 1, " ranks or more"));
  }
  machine.backend = choose_backend(config, places_of(workers));
  check_open_precision(config, machine.backend, workers);
  machine.shares_gpu = share_gpus(config, machine.backend, workers, tuner_host);
  check_agreement(machine.backend, workers, machine.group_size);
  machine.allocator = allocator_of(config, machine.backend);
  MemoryLimit limit = memory_limit_of_run(config, machine.backend, workers, earlier.memory);
  machine.memory_limit = limit.bytes;
  machine.memory_limit_origin = std::move(limit.origin);
  machine.host_memory_limit =
      host_memory_limit_of_run(config, machine.backend, workers, earlier.host_memory);
  machine.is_on_host = lives_on_host(machine.backend, workers.front().devices);
  machine.threads_per_rank = threads_per_rank(workers);
  machine.devices_per_node = devices_per_node(workers);
  limit_node(machine, config, machine.devices_per_node);
  for (const WorkerInfo& worker : workers) {
    machine.product_workspace =
        largest(machine.product_workspace, workspace_on(machine.backend, worker.devices));
  }
  set_host_overhead(machine, config, workers.front().devices, profiles);
  return machine;
}

Machine machine_of_plan(const TuningConfig& config, const PlannedWorkers& workers,
                        const std::vector<DeviceInfo>& here, const ProfilePlaces& profiles) {
  Machine machine;
  const int fewest = kFewestWorkers * config.autotuning.mp_size;
  machine.workers = workers.count.value_or(config.ranks_per_experiment.value_or(fewest));
  machine.group_size =
      data_parallel_ranks(config, config.ranks_per_experiment.value_or(machine.workers));
  if (machine.group_size > machine.workers) {
    throw_group_size(config, machine.group_size, concat("there are ", machine.workers, " workers"));
  }
  machine.backend = choose_backend(config, {{"this machine", &here}});
  machine.allocator = allocator_of(config, machine.backend);
  machine.memory_limit = config.settings.memory_limit;
  const int on_a_host = workers.on_largest_host > 0 ? workers.on_largest_host : machine.workers;
  machine.host_memory_limit = host_memory_limit_of_plan(config, machine.backend, here, on_a_host);
  limit_node(machine, config, on_a_host);
  machine.is_on_host = lives_on_host(machine.backend, here);
  machine.threads_per_rank = config.settings.threads_per_rank;
  machine.devices_per_node = workers.on_largest_host;
  machine.product_workspace = workspace_on(machine.backend, here);
  set_host_overhead(machine, config, here, profiles);
  return machine;
}

TuningConfig completed(TuningConfig config, const Machine& machine) {
  RunSettings& settings = config.settings;
  settings.backend = machine.backend;
  settings.memory_limit = less_headroom(config, machine.memory_limit);
  settings.host_memory_limit = machine.host_memory_limit;
  settings.pinned_limit = machine.pinned_limit;
  settings.drive_limit = machine.drive_limit;
  settings.allocator = machine.allocator;
  settings.product_workspace = machine.product_workspace;
  const Seconds settling = traits_of_backend(machine.backend).settles_in;
  settings.least_warmup_time = config.warmup_seconds.value_or(settling);
  settings.least_measure_time = config.measure_seconds.value_or(settling);
  settings.threads_per_rank = machine.threads_per_rank;
  settings.devices_per_node = machine.devices_per_node;
  settings.host_overhead = machine.host_overhead;
  settings.share_gpu = machine.shares_gpu;
  if (machine.shares_gpu) {
    config.notes.emplace_back("several workers shared a GPU (--share-gpu): the times mean nothing");
  }
  return config;
}

namespace {

/// What a worker may take of its host where its device lives there, too.
Bytes limit_on_host(const Machine& machine, const std::vector<WorkerInfo>& workers) {
  const DeviceInfo* const device =
      workers.empty() ? nullptr : find_device(workers.front().devices, machine.backend);
  const bool adds_up =
      device != nullptr && device->is_shared && machine.host_memory_limit != kNoLimit;
  return machine.memory_limit + (adds_up ? machine.host_memory_limit : 0);
}

// A user who has GPUs does not mean to train on CPUs.
std::string passed_over(const Machine& machine, const std::vector<WorkerInfo>& workers) {
  for (const WorkerInfo& worker : workers) {
    for (const DeviceInfo& device : worker.devices) {
      if (device.id.empty() || device.unusable.empty()) continue;
      return concat("backend auto chooses ", machine.backend, ", since the GPU of rank ",
                    worker.rank, " on ", worker.host, " cannot be used: ", device.unusable);
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> machine_warnings(const TuningConfig& config, const Machine& machine,
                                          const std::vector<WorkerInfo>& workers,
                                          const std::string& tuner_host) {
  std::vector<std::string> warnings;
  const DeviceInfo* first =
      workers.empty() ? nullptr : find_device(workers.front().devices, machine.backend);
  if (first != nullptr && !first->id.empty()) warnings = idle_gpu_warnings(workers, tuner_host);
  if (first != nullptr && !first->id.empty() && machine.group_size > 1) {
    std::string warning = mig_warning(workers);
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  if (config.settings.backend == "auto" && (first == nullptr || first->id.empty())) {
    std::string warning = passed_over(machine, workers);
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  for (auto& line : disagreement_warnings(machine.backend, workers)) {
    warnings.push_back(std::move(line));
  }
  warnings.insert(warnings.end(), machine.profile_warnings.begin(), machine.profile_warnings.end());
  const bool is_made_up_for =
      product_rate(machine.host_overhead, DType::fp32, machine.threads_per_rank) != nullptr;
  if (config.deepspeed.step().dtype == DType::fp32 && !is_made_up_for) {
    for (const auto& caveat : texts_of(machine.backend, workers, &DeviceInfo::fp32_caveat)) {
      if (!caveat.empty()) warnings.push_back(caveat);
    }
  }
  if (machine.devices_per_node == 0 && config.deepspeed.step().quantized_gradients) {
    warnings.emplace_back(
        "--world-size plans for one host; zero_quantized_gradients needs to know them all, "
        "use --hostfile");
  }
  const bool is_users = config.settings.memory_limit != 0;
  for (auto& line :
       exceeded_rooms(is_users ? "memory_limit is" : "the memory limit of the resumed run is",
                      limit_on_host(machine, workers), !is_users, machine.backend, workers)) {
    line += is_users ? "; the system kills workers that use that much"
                     : "; --memory-limit sets another, under which everything is measured again";
    warnings.push_back(std::move(line));
  }
  if (is_users) return warnings;
  std::string shortage =
      shortage_of_free_memory(machine.memory_limit, machine.backend, workers, machine.allocator);
  if (!shortage.empty()) warnings.push_back(std::move(shortage));
  return warnings;
}

std::string warning_of_other_groups(const std::vector<Record>& earlier, int group_size) {
  std::set<int> sizes;
  for (const auto& record : earlier) sizes.insert(record.experiment.ranks);
  if (sizes.empty() || sizes.contains(group_size)) return "";
  return concat("the results found there are from groups of ", *sizes.rbegin(),
                " ranks, and now groups have ", group_size,
                ": everything is measured again; to continue, use --ranks-per-experiment ",
                *sizes.rbegin());
}

std::string device_names(const std::string& backend, const std::vector<WorkerInfo>& workers) {
  const auto names = texts_of(backend, workers, &DeviceInfo::name);
  return join({names.begin(), names.end()}, ", ");
}

std::string library_names(const std::string& backend, const std::vector<WorkerInfo>& workers) {
  auto names = texts_of(backend, workers, &DeviceInfo::libraries);
  names.erase("");
  return join({names.begin(), names.end()}, "; ");
}

std::vector<std::string> libraries_found(const std::string& backend,
                                         const std::vector<WorkerInfo>& workers) {
  std::set<std::string> lines;
  for (const auto& worker : workers) {
    const DeviceInfo* device = find_device(worker.devices, backend);
    if (device != nullptr) lines.insert(device->found.begin(), device->found.end());
  }
  return {lines.begin(), lines.end()};
}

}  // namespace dstune
