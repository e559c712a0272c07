#include "core/search/feasibility/memory_limit.hpp"

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/device/backend_list.hpp"
#include "core/search/feasibility/gpus.hpp"
#include "core/search/feasibility/memory_beside_plan.hpp"
#include "core/search/feasibility/memory_room.hpp"

namespace dstune {
namespace {

constexpr Bytes kUnbounded = std::numeric_limits<Bytes>::max();

/// A worker's device for one backend, and the memory that it may use.
struct Share {
  const WorkerInfo& worker;
  const DeviceInfo& device;
  int sharers;      ///< the workers that drive it, if it is a GPU
  MemoryRoom room;  ///< the narrowest bound, if the memory is the host's

  AllocatorModel allocator;

  Share(const WorkerInfo& of, const std::string& backend, const std::vector<WorkerInfo>& workers,
        AllocatorModel counted_as)
      : worker(of),
        device(*find_device(of.devices, backend)),
        sharers(device.id.empty() ? 1 : workers_on_gpu_of(of, workers)),
        room(narrowest_room(memory_rooms(of, device, workers))),
        allocator(counted_as) {}

  std::vector<MemoryReserve> reserves() const {
    std::vector<MemoryReserve> own = device.reserves;
    if (allocator != AllocatorModel::exact) {
      std::erase_if(own, [](const MemoryReserve& reserve) { return reserve.only_if_exact; });
    }
    return own;
  }
  Bytes usable() const {
    const Bytes free = device.free_memory / static_cast<Bytes>(sharers);
    if (device.limit_is_free_memory) return free - std::min(free, sum_of(reserves()));
    if (sharers > 1) return free;
    return device.is_shared ? room.usable() : device.memory;
  }
  bool is_of_host() const {
    return device.is_shared && sharers == 1 && !device.limit_is_free_memory;
  }

  /// Where the limit comes from: "79.10 GiB free on NVIDIA H100 of rank 3 on nodeB, less 500.00 MiB
  /// CUDA context (measured)". Rank 0, which never trains, stands for a worker that is planned.
  std::string describe_free() const {
    std::vector<std::string> parts;
    for (const MemoryReserve& reserve : reserves()) {
      parts.push_back(concat(format_bytes(reserve.bytes), " ", reserve.what,
                             reserve.is_measured ? " (measured)" : " (estimated)"));
    }
    return concat(format_bytes(device.free_memory), " free on ", device.name,
                  worker.rank == 0 ? " of this machine"
                                   : concat(" of rank ", worker.rank, " on ", worker.host),
                  sharers > 1 ? concat(", for ", sharers, " workers") : "",
                  parts.empty() ? "" : ", less ", join(parts, ", "));
  }
};

const WorkerInfo& poorest(const std::vector<WorkerInfo>& workers, const std::string& backend,
                          AllocatorModel allocator) {
  const auto usable = [&](const WorkerInfo& worker) {
    return Share(worker, backend, workers, allocator).usable();
  };
  return *std::min_element(
      workers.begin(), workers.end(),
      [&](const WorkerInfo& a, const WorkerInfo& b) { return usable(a) < usable(b); });
}

/// The least memory that any bound leaves to a worker if no other process uses any.
Bytes nominal_limit(const std::vector<WorkerInfo>& workers, const std::string& backend) {
  Bytes least = kUnbounded;
  for (const WorkerInfo& worker : workers) {
    const DeviceInfo* device = find_device(worker.devices, backend);
    if (device == nullptr || !device->is_shared) continue;
    for (const MemoryRoom& room : memory_rooms(worker, *device, workers)) {
      least = std::min(least, room.nominal());
    }
  }
  return least;
}

}  // namespace

bool lives_on_host(const std::string& backend, const std::vector<DeviceInfo>& devices) {
  const DeviceInfo* const device = find_device(devices, backend);
  return device != nullptr && device->is_shared;
}

Bytes part_of_node(const std::optional<Bytes>& limit, int on_each_host) {
  return limit ? std::max<Bytes>(*limit / static_cast<Bytes>(on_each_host), 1) : 0;
}

std::optional<Bytes> users_host_memory_limit(const TuningConfig& config, int on_each_host) {
  if (!config.host_memory_limit) return std::nullopt;
  return part_of_node(config.host_memory_limit, on_each_host);
}

AllocatorModel allocator_of(const TuningConfig& config, const std::string& backend) {
  return config.allocator.value_or(traits_of_backend(backend).allocator);
}

MemoryLimit memory_limit_of_run(const TuningConfig& config, const std::string& backend,
                                const std::vector<WorkerInfo>& workers, Bytes earlier) {
  if (config.settings.memory_limit != 0) return {config.settings.memory_limit, ""};
  const AllocatorModel allocator = allocator_of(config, backend);
  const Share share(poorest(workers, backend, allocator), backend, workers, allocator);
  const Bytes usable = share.usable();
  if (!share.device.limit_is_free_memory && !share.is_of_host()) return {usable, ""};
  const Bytes most = share.is_of_host() ? nominal_limit(workers, backend) : kUnbounded;
  if (earlier != 0 && earlier <= most && earlier != usable) {
    return {earlier, "that of the resumed run"};
  }
  std::string origin = share.is_of_host()
                           ? concat(share.room.describe(), " (", share.worker.host, ")")
                           : share.describe_free();
  if (usable > 0) return {usable, std::move(origin)};
  throw ConfigError(config.source,
                    {{"/dstune/memory_limit", concat("is not set, and nothing is left",
                                                     share.is_of_host() ? ": " : " of ", origin)}});
}

namespace {

/// Whether the file offloads, or searches that, or leaves it to us.
bool may_offload(const TuningConfig& config, bool is_one_memory) {
  const OffloadSearch& search = config.offload;
  if (search.when != OffloadWhen::never && (search.is_given || !is_one_memory)) return true;
  return says_what_is_offloaded(config.deepspeed.json(), config.space, config.stages);
}

/// Machines of a kind differ by some MiB, and a run that goes on would measure all again if it
/// found another limit than the one that it began with.
Bytes alike_on_machines_of_a_kind(Bytes limit) {
  constexpr Bytes kUnit = Bytes{1} << 30U;
  constexpr Bytes kLarge = 8 * kUnit;
  return limit < kLarge || limit == kNoLimit ? limit : limit / kUnit * kUnit;
}

/// The limit that hangs on no host: one for both memories, or the user's; else none.
std::optional<Bytes> limit_without_a_look(const TuningConfig& config, bool is_one_memory,
                                          int on_each_host) {
  if (!may_offload(config, is_one_memory) || (is_one_memory && config.settings.memory_limit == 0))
    return 0;
  return users_host_memory_limit(config, on_each_host);
}

}  // namespace

Bytes host_memory_limit_of_run(const TuningConfig& config, const std::string& backend,
                               const std::vector<WorkerInfo>& workers, Bytes earlier) {
  const bool is_one = lives_on_host(backend, workers.front().devices);
  int on_a_host = 1;
  for (const WorkerInfo& worker : workers) on_a_host = std::max(on_a_host, worker.workers_on_host);
  if (const auto known = limit_without_a_look(config, is_one, on_a_host)) return *known;
  Bytes least = kNoLimit;
  for (const WorkerInfo& worker : workers) {
    const auto host = std::ranges::find_if(worker.devices, &DeviceInfo::is_shared);
    if (host == worker.devices.end()) continue;
    for (const MemoryRoom& room : memory_rooms(worker, *host, workers)) {
      least = std::min(least, room.nominal());
    }
  }
  if (is_one) least -= std::min(config.settings.memory_limit, least);
  if (earlier != 0 && earlier <= least) return earlier;
  return std::max<Bytes>(alike_on_machines_of_a_kind(least), 1);
}

Bytes host_memory_limit_of_plan(const TuningConfig& config, const std::string& backend,
                                const std::vector<DeviceInfo>& here, int on_each_host) {
  return limit_without_a_look(config, lives_on_host(backend, here), on_each_host)
      .value_or(kNoLimit);
}

std::string shortage_of_free_memory(Bytes limit, const std::string& backend,
                                    const std::vector<WorkerInfo>& workers,
                                    AllocatorModel allocator) {
  for (const WorkerInfo& worker : workers) {
    const DeviceInfo* device = find_device(worker.devices, backend);
    if (device == nullptr || !device->limit_is_free_memory) continue;
    const Share share(worker, backend, workers, allocator);
    if (limit <= share.usable()) continue;
    return concat("the resumed run began with a memory limit of ", format_bytes(limit),
                  ", and now there are only ", share.describe_free(),
                  "; --memory-limit sets another, under which everything is measured again");
  }
  return "";
}

}  // namespace dstune
