#include "core/search/feasibility/memory_here.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace dstune {

std::optional<MemoryLimit> limit_of_workers_here(const TuningConfig& config,
                                                 const std::string& backend,
                                                 const std::vector<WorkerInfo>& workers) {
  try {
    return memory_limit_of_run(config, backend, workers);
  } catch (const ConfigError& fault) {
    log_warning(concat("on this machine: ", fault.what()));
    return std::nullopt;
  }
}

std::optional<MemoryLimit> limit_of_gpu_here(const TuningConfig& config, const Machine& planned,
                                             const LocalBackends& backends) {
  const DeviceInfo* listed = find_device(backends.devices, planned.backend);
  if (listed == nullptr || !listed->limit_is_free_memory) return std::nullopt;
  DeviceInfo device = backends.measure(planned.backend, {.local_size = planned.workers});
  if (!device.unusable.empty()) {
    log_warning(concat("the memory of ", device.name, " is not known: ", device.unusable));
    return std::nullopt;
  }
  WorkerInfo worker;
  worker.devices = {std::move(device)};
  auto limit = limit_of_workers_here(config, planned.backend, {worker});
  if (!limit || limit->bytes > config.objective.memory_headroom) return limit;
  log_warning(concat("on this machine memory_headroom leaves nothing of ",
                     format_bytes(limit->bytes), ": ", limit->origin));
  return std::nullopt;
}

}  // namespace dstune
