#include "core/search/schedule/excluded_workers.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/search/schedule/slot_packing.hpp"

namespace dstune {
namespace {

std::string short_name(const std::string& host) { return host.substr(0, host.find('.')); }

/// All names by which a worker can be meant.
std::vector<std::string> names_of(const WorkerInfo& worker) {
  std::vector<std::string> names = {concat("rank ", worker.rank), worker.host,
                                    short_name(worker.host)};
  for (const DeviceInfo& device : worker.devices) {
    if (device.id.empty()) continue;  // a CPU, which is all of its host
    names.push_back(device.id);
    names.push_back(concat(worker.host, ':', device.index));
    names.push_back(concat(short_name(worker.host), ':', device.index));
  }
  return names;
}

std::string message_about(const std::string& name, const std::vector<WorkerInfo>& workers) {
  if (name == "rank 0") return "is rank 0, which only tunes; accepted: workers";
  std::set<std::string> known;
  std::set<std::string> hosts;
  for (const WorkerInfo& worker : workers) {
    for (const std::string& each : names_of(worker)) known.insert(each);
    hosts.insert(worker.host);
  }
  const std::string near = did_you_mean(name, {known.begin(), known.end()});
  constexpr std::size_t kShown = 8;
  std::vector<std::string> shown(hosts.begin(), hosts.end());
  const bool are_many = shown.size() > kShown;
  if (are_many) shown.resize(kShown);
  return concat("is \"", name, "\", which is not a worker of this run",
                near.empty() ? "" : concat("; did you mean \"", near, "\"?"),
                "; accepted: ranks from 1 to ", workers.back().rank, ", devices, and the hosts ",
                join(shown, ", "), are_many ? ", ..." : "");
}

}  // namespace

std::vector<int> excluded_ranks(const std::vector<std::string>& names,
                                const std::vector<WorkerInfo>& workers, const std::string& source) {
  constexpr const char* kExclude = "/dstune/exclude";
  std::set<int> ranks;
  std::vector<Problem> problems;
  for (const std::string& name : names) {
    const std::size_t before = ranks.size();
    bool is_known = false;
    for (const WorkerInfo& worker : workers) {
      const auto all = names_of(worker);
      if (std::ranges::find(all, name) == all.end()) continue;
      ranks.insert(worker.rank);
      is_known = true;
    }
    if (!is_known && ranks.size() == before) {
      problems.push_back({kExclude, message_about(name, workers)});
    }
  }
  if (problems.empty() && !ranks.empty() && ranks.size() == workers.size()) {
    problems.push_back({kExclude, concat("leaves none of the ", workers.size(), " workers")});
  }
  if (!problems.empty()) throw ConfigError(source, problems);
  return {ranks.begin(), ranks.end()};
}

std::vector<WorkerInfo> without_ranks(std::vector<WorkerInfo> workers,
                                      const std::vector<int>& excluded) {
  const std::vector<WorkerInfo> all = workers;
  std::erase_if(workers, [&](const WorkerInfo& worker) { return contains(excluded, worker.rank); });
  for (WorkerInfo& worker : workers) {
    const auto left_out = std::ranges::count_if(all, [&](const WorkerInfo& other) {
      return other.host == worker.host && contains(excluded, other.rank);
    });
    worker.workers_on_host = std::max(worker.workers_on_host - static_cast<int>(left_out), 0);
  }
  return workers;
}

}  // namespace dstune
