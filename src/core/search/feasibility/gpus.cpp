#include "core/search/feasibility/gpus.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {
namespace {

/// A worker and the GPU that it takes.
struct Driver {
  const WorkerInfo* worker;
  const DeviceInfo* gpu;
};

struct Host {
  std::vector<Driver> drivers;
  int gpus = 0;  ///< the number of GPUs that its workers see together
};

const DeviceInfo* gpu_of(const WorkerInfo& worker) {
  const auto found = std::find_if(worker.devices.begin(), worker.devices.end(),
                                  [](const DeviceInfo& device) { return !device.id.empty(); });
  return found == worker.devices.end() ? nullptr : &*found;
}

std::vector<Driver> drivers_of(const std::vector<WorkerInfo>& workers) {
  std::vector<Driver> drivers;
  for (const WorkerInfo& worker : workers) {
    if (const DeviceInfo* gpu = gpu_of(worker)) drivers.push_back({&worker, gpu});
  }
  return drivers;
}

std::map<std::string, Host> hosts_of(const std::vector<WorkerInfo>& workers) {
  std::map<std::string, Host> hosts;
  std::map<std::string, std::set<std::string>> ids;
  for (const Driver& driver : drivers_of(workers)) {
    Host& host = hosts[driver.worker->host];
    host.drivers.push_back(driver);
    auto& seen = ids[driver.worker->host];
    seen.insert(driver.gpu->id);
    // Where workers are bound to GPUs, each sees one GPU, a different one each.
    host.gpus = std::max({host.gpus, driver.gpu->seen, static_cast<int>(seen.size())});
  }
  return hosts;
}

std::string counted(std::size_t count, const std::string& noun) {
  return concat(count, " ", noun, count == 1 ? "" : "s");
}

std::string host_line(const std::string& name, int gpus, const std::string& tuner_host) {
  const bool has_tuner = name == tuner_host;
  return concat("\"", name, " slots=", gpus + (has_tuner ? 1 : 0), "\"",
                has_tuner ? ", with one for rank 0, which uses no GPU" : "");
}

std::string short_id(const std::string& id) {
  constexpr std::size_t kEnough = 12;  // the length of "GPU-5d3b1c40"
  return id.substr(0, kEnough);
}

/// Two workers that drive the same GPU.
using Pair = std::pair<Driver, Driver>;

/// The first such pair of `drivers` in the order of ranks.
std::optional<Pair> find_pair(const std::vector<Driver>& drivers) {
  std::map<std::string, Driver> first;
  for (const Driver& driver : drivers) {
    const auto [earlier, is_new] = first.emplace(driver.gpu->id, driver);
    if (!is_new) return Pair{earlier->second, driver};
  }
  return std::nullopt;
}

bool has_mig_instance(const std::vector<Driver>& drivers) {
  return std::any_of(drivers.begin(), drivers.end(),
                     [](const Driver& driver) { return driver.gpu->is_mig_instance; });
}

Problem too_many(const std::string& name, const Host& host, const std::string& tuner_host) {
  if (has_mig_instance(host.drivers)) {
    return {name,
            concat("has ", counted(host.drivers.size(), "worker"), " for the ",
                   counted(static_cast<std::size_t>(host.gpus), "MIG instance"),
                   " that they see, and each needs one of its own: a process sees one alone, the "
                   "first of its CUDA_VISIBLE_DEVICES (nvidia-smi -L lists them; docs/gpu.md)")};
  }
  return {name, concat("has ", counted(host.drivers.size(), "worker"), " for the ",
                       counted(static_cast<std::size_t>(host.gpus), "GPU"),
                       " that they see, and each needs one of its own; its line in the host file: ",
                       host_line(name, host.gpus, tuner_host),
                       " (--share-gpu lets workers share one, for tests)")};
}

Problem same_gpu(const Pair& pair) {
  const auto& [one, other] = pair;
  const bool is_one_host = one.worker->host == other.worker->host;
  return {
      is_one_host ? one.worker->host : concat(one.worker->host, ", ", other.worker->host),
      concat("ranks ", one.worker->rank, " and ", other.worker->rank, " would both drive the GPU ",
             short_id(one.gpu->id),
             ", and each needs one of its own: CUDA_VISIBLE_DEVICES, or the launcher's binding, "
             "shows them ",
             counted(static_cast<std::size_t>(one.gpu->seen), "GPU"), " and ",
             counted(static_cast<std::size_t>(other.gpu->seen), "GPU"))};
}

}  // namespace

void check_gpus(const std::vector<WorkerInfo>& workers, const std::string& tuner_host) {
  std::vector<Problem> problems;
  for (const auto& [name, host] : hosts_of(workers)) {
    if (static_cast<int>(host.drivers.size()) > host.gpus) {
      problems.push_back(too_many(name, host, tuner_host));
    } else if (const auto pair = find_pair(host.drivers)) {
      problems.push_back(same_gpu(*pair));
    }
  }
  // Containers on one machine may have host names of their own, so that all workers are compared.
  if (problems.empty()) {
    if (const auto pair = find_pair(drivers_of(workers))) problems.push_back(same_gpu(*pair));
  }
  if (!problems.empty()) throw ConfigError("mpirun", std::move(problems));
}

int workers_on_gpu_of(const WorkerInfo& worker, const std::vector<WorkerInfo>& workers) {
  const DeviceInfo* own = gpu_of(worker);
  if (own == nullptr) return 1;
  const auto drivers = drivers_of(workers);
  return static_cast<int>(std::count_if(drivers.begin(), drivers.end(), [&](const Driver& driver) {
    return driver.gpu->id == own->id;
  }));
}

std::vector<std::string> idle_gpu_warnings(const std::vector<WorkerInfo>& workers,
                                           const std::string& tuner_host) {
  std::vector<std::string> warnings;
  for (const auto& [name, host] : hosts_of(workers)) {
    const auto idle = host.gpus - static_cast<int>(host.drivers.size());
    if (idle <= 0) continue;
    warnings.push_back(concat(
        idle, " of the ", host.gpus, " GPUs of ", name, " stay idle: it has ",
        counted(host.drivers.size(), "worker"),
        "; its line in the host file for all of them: ", host_line(name, host.gpus, tuner_host)));
  }
  return warnings;
}

std::string mig_warning(const std::vector<WorkerInfo>& workers) {
  if (!has_mig_instance(drivers_of(workers))) return "";
  return "workers have MIG instances, which NCCL does not connect: it refuses two of one GPU (from "
         "2.30 on unless NCCL_MULTI_RANK_GPU_ENABLE=1), and between them there is neither NVLink "
         "nor peer access; --ranks-per-experiment 1 measures each alone";
}

std::string gpu_table(const std::vector<WorkerInfo>& workers) {
  using Align = Table::Align;
  Table table({{"host", Align::left},
               {"rank", Align::right},
               {"GPU", Align::right},
               {"name", Align::left},
               {"id", Align::left}});
  for (const auto& [worker, gpu] : drivers_of(workers)) {
    table.add_row({worker->host, std::to_string(worker->rank), std::to_string(gpu->index),
                   gpu->name, short_id(gpu->id)});
  }
  return table.empty() ? "" : table.to_string();
}

}  // namespace dstune
