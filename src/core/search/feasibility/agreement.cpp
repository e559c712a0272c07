#include "core/search/feasibility/agreement.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

/// The workers with one value of a setting, in the order of ranks.
using Holders = std::map<std::string, std::vector<const WorkerInfo*>>;

struct Setting {
  Holders holders;
  bool must_agree = false;
};

std::string value_of(const DeviceInfo& device, const std::string& name) {
  const auto found = std::find_if(device.common.begin(), device.common.end(),
                                  [&](const CommonSetting& common) { return common.name == name; });
  return found == device.common.end() ? "" : found->value;
}

// By name; a worker that lacks the setting has the value "".
std::map<std::string, Setting> settings_of(const std::string& backend,
                                           const std::vector<WorkerInfo>& workers) {
  std::map<std::string, Setting> settings;
  for (const WorkerInfo& worker : workers) {
    const DeviceInfo* device = find_device(worker.devices, backend);
    if (device == nullptr) continue;
    for (const CommonSetting& common : device->common) {
      settings[common.name].must_agree |= common.must_agree;
    }
  }
  for (const WorkerInfo& worker : workers) {
    const DeviceInfo* device = find_device(worker.devices, backend);
    if (device == nullptr) continue;
    for (auto& [name, setting] : settings) {
      setting.holders[value_of(*device, name)].push_back(&worker);
    }
  }
  return settings;
}

std::string shown(const std::string& value, bool must_agree) {
  if (!value.empty()) return value;
  return must_agree ? "not known" : "not set";
}

// "rank 3 on node2", "4 workers, the first of them rank 9 on node2".
std::string named(const std::vector<const WorkerInfo*>& workers) {
  const std::string first = concat("rank ", workers.front()->rank, " on ", workers.front()->host);
  return workers.size() == 1 ? first
                             : concat(workers.size(), " workers, the first of them ", first);
}

// "is 2.28.9 on 7 workers, ..., but 2.21.5 on rank 3 on node2"; "" where all have the same.
std::string disagreement(const Setting& setting) {
  constexpr std::size_t kMostShown = 3;
  const Holders& holders = setting.holders;
  if (holders.size() < 2) return "";
  const auto most = std::max_element(
      holders.begin(), holders.end(),
      [](const auto& one, const auto& other) { return one.second.size() < other.second.size(); });
  std::vector<std::string> others;
  for (auto value = holders.begin(); value != holders.end(); ++value) {
    if (value == most) continue;
    others.push_back(concat(shown(value->first, setting.must_agree), " on ", named(value->second)));
  }
  const std::size_t left = others.size() - std::min(others.size(), kMostShown);
  others.resize(others.size() - left);
  return concat("is ", shown(most->first, setting.must_agree), " on ", named(most->second),
                ", but ", join(others, "; "), left == 0 ? "" : concat("; and ", left, " more"));
}

// Whether every way to make groups keeps workers with different values apart.
bool is_kept_apart(const Setting& setting, int group_size) {
  std::map<std::string, std::string> value_of_host;
  std::map<std::string, int> on_host;
  for (const auto& [value, holders] : setting.holders) {
    for (const WorkerInfo* worker : holders) {
      if (value_of_host.emplace(worker->host, value).first->second != value) return false;
      ++on_host[worker->host];
    }
  }
  return std::all_of(on_host.begin(), on_host.end(),
                     [&](const auto& host) { return group_size <= host.second; });
}

}  // namespace

void check_agreement(const std::string& backend, const std::vector<WorkerInfo>& workers,
                     int group_size) {
  std::vector<Problem> problems;
  for (const auto& [name, setting] : settings_of(backend, workers)) {
    const std::string text = disagreement(setting);
    if (!setting.must_agree || text.empty() || group_size == 1) continue;
    if (is_kept_apart(setting, group_size)) continue;
    problems.push_back({name, concat(text, "; all ranks of a group need the same")});
  }
  if (!problems.empty()) throw ConfigError("mpirun", std::move(problems));
}

std::vector<std::string> disagreement_warnings(const std::string& backend,
                                               const std::vector<WorkerInfo>& workers) {
  std::vector<std::string> warnings;
  for (const auto& [name, setting] : settings_of(backend, workers)) {
    const std::string text = disagreement(setting);
    if (text.empty()) continue;
    warnings.push_back(concat(
        name, " ", text,
        setting.must_agree
            ? "; a group of both would fail"
            : concat("; set it where the run starts: scripts/tune.sh passes it on with -hostfile, "
                     "mpirun with -x ",
                     name)));
  }
  return warnings;
}

}  // namespace dstune
