#include "core/search/run/preflight.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/device/backend_list.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/schedule/machine_faults.hpp"
#include "core/train/check_machine.hpp"

namespace dstune {
namespace {

constexpr int kChecks = 3;

/// The hosts with the number of their workers, for which a check holds.
std::vector<std::string> places_of(const std::vector<WorkerInfo>& workers) {
  std::map<std::string, int> counts;
  for (const WorkerInfo& worker : workers) ++counts[worker.host];
  std::vector<std::string> places;
  places.reserve(counts.size());
  for (const auto& [host, count] : counts) places.push_back(concat(host, ": ", count));
  return places;
}

std::vector<Experiment> experiments_of(const TuningConfig& config, int group_size, int groups,
                                       int check, const std::vector<WorkerInfo>& workers) {
  std::vector<Experiment> experiments;
  for (int group = 0; group < groups; ++group) {
    const int repetition = check * groups + group;
    Experiment experiment = make_experiment(config, group_size, 0, 1, 1);
    experiment.name = repetition == 0 ? "preflight" : concat("preflight_again", repetition);
    experiment.repetition = repetition;
    make_preflight(experiment, places_of(workers));
    experiments.push_back(std::move(experiment));
  }
  return experiments;
}

class Names {
 public:
  Names(const std::string& backend, const std::vector<WorkerInfo>& workers) {
    for (const WorkerInfo& info : workers) {
      const DeviceInfo* const device = find_device(info.devices, backend);
      std::string name = concat("rank ", info.rank, " on ", info.host);
      if (device != nullptr && !device->id.empty()) {
        name += concat(" (", device->name, " ", device->index, ")");
      }
      Worker worker{info.rank, info.host, device == nullptr ? "" : device->name};
      workers_.insert_or_assign(info.rank, std::pair(std::move(worker), std::move(name)));
    }
  }

  const Worker& worker(int rank) const { return workers_.at(rank).first; }
  const std::string& of(int rank) const { return workers_.at(rank).second; }
  bool has(int rank) const { return workers_.contains(rank); }

 private:
  std::map<int, std::pair<Worker, std::string>> workers_;
};

std::vector<CheckedGroup> groups_of(const std::vector<Record>& records, const Names& names) {
  std::vector<CheckedGroup> groups;
  for (const Record& record : records) {
    const auto* const measured = std::get_if<Measured>(&record.outcome);
    if (measured == nullptr || !measured->machine_check) {
      log_warning(concat("the preflight says nothing about ranks ",
                         record.ranks.empty() ? "" : concat(record.ranks.front(), " ..."), ": ",
                         describe(record.outcome)));
      continue;
    }
    CheckedGroup group{{}, {}, *measured->machine_check};
    for (const int rank : record.ranks) {
      if (!names.has(rank)) continue;
      group.workers.push_back(names.worker(rank));
      group.names.push_back(names.of(rank));
    }
    if (group.workers.size() == group.check.ranks.size()) groups.push_back(std::move(group));
  }
  return groups;
}

/// Those of `faults` that were found before, too; all in the first check.
void keep_lasting(std::vector<MachineFault>& faults, const std::vector<MachineFault>& before,
                  int check) {
  if (check == 0) return;
  std::erase_if(faults, [&](const MachineFault& fault) {
    return std::ranges::find(before, fault.key, &MachineFault::key) == before.end();
  });
}

}  // namespace

bool wants_preflight(const TuningConfig& config, std::size_t workers) {
  if (config.preflight != Preflight::on) return config.preflight == Preflight::only;
  return workers > 1 && !traits_of_backend(config.settings.backend).time_is_virtual;
}

std::string preflight_text(const PreflightReport& report) {
  std::string text = concat(report.table, '\n');
  for (const std::string& fault : report.faults) text += concat("slow: ", fault, '\n');
  return report.faults.empty() ? concat(text, "no rank is slow, and all values arrived intact\n")
                               : text;
}

PreflightReport run_preflight(const TuningConfig& config, int group_size, Scheduler& scheduler,
                              const std::vector<WorkerInfo>& workers) {
  PreflightReport report;
  if (!wants_preflight(config, workers.size())) return report;
  const Names names(config.settings.backend, workers);
  const int groups = std::max(1, scheduler.slots(group_size));
  std::vector<MachineFault> faults;
  for (int check = 0; check < kChecks && (check == 0 || !faults.empty()); ++check) {
    const auto records = scheduler.run(experiments_of(config, group_size, groups, check, workers));
    const auto found = groups_of(records, names);
    if (found.empty()) return {};
    report.summary = describe_check(found);
    report.table = check_table(found);
    auto now = find_machine_faults(found);
    keep_lasting(now, faults, check);
    faults = std::move(now);
  }
  for (const MachineFault& fault : faults) {
    std::vector<std::string> who;
    for (const Worker& worker : fault.workers) who.push_back(names.of(worker.rank));
    const std::string how = concat(fault.how, ", in each of ", kChecks, " checks of the machine");
    report.faults.push_back(concat(join(who, " and "), " ", how));
    if (fault.workers.size() == 1) {
      scheduler.avoid(fault.workers.front(), how);
    } else {
      report.slow_connections.push_back(report.faults.back());
      log_warning(report.faults.back());
    }
  }
  return report;
}

}  // namespace dstune
