#include "core/search/tuner/result_remarks.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <variant>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/search/choice/score.hpp"
#include "core/search/space/known_faults.hpp"

namespace dstune {
namespace {

const Measured* measured_of(const Record& record) { return std::get_if<Measured>(&record.outcome); }

/// An experiment by its name, and the measurement that decided: the repetition, where it has one.
struct Contender {
  const Record* record = nullptr;
  const Measured* measured = nullptr;
};

bool is_measured_repetition(const Record& record) {
  return record.experiment.repetition > 0 && measured_of(record) != nullptr;
}

// What ran beside others is no match for what was repeated alone; of repetitions the middle one.
const Measured* deciding_measurement(const Record& record, const std::vector<Record>& records) {
  if (std::ranges::none_of(records, is_measured_repetition)) return measured_of(record);
  std::vector<const Measured*> repetitions;
  for (const Record& other : records) {
    const bool is_its = other.experiment.ds_config == record.experiment.ds_config;
    if (is_its && is_measured_repetition(other)) repetitions.push_back(measured_of(other));
  }
  if (repetitions.empty()) return nullptr;
  std::ranges::stable_sort(repetitions, {},
                           [](const Measured* each) { return typical_step_time(*each); });
  return repetitions[(repetitions.size() - 1) / 2];
}

/// The best of each stage, `best` aside.
std::map<int, Contender> rivals_of(const Record& best, const std::vector<Record>& records,
                                   Metric metric) {
  std::map<int, Contender> rivals;
  for (const Record& record : records) {
    if (record.experiment.repetition > 0 || record.experiment.name == best.experiment.name)
      continue;
    const Measured* measured = deciding_measurement(record, records);
    if (measured == nullptr) continue;
    Contender& rival = rivals[make_step_config(record.experiment).stage];
    const bool is_first = rival.measured == nullptr;
    if (is_first || score(metric, *measured) > score(metric, *rival.measured)) {
      rival = {&record, measured};
    }
  }
  return rivals;
}

/// With `factor` times the host time. A step that hides it is not shortened below half.
Measured with_host_time(const Measured& measured, double factor) {
  Measured changed = measured;
  const Seconds before = typical_step_time(measured);
  const Seconds after = before + (factor - 1) * measured.ledger.host_time();
  Seconds& time = changed.varying ? changed.varying->mean_step_time : changed.step_time.median;
  time = std::max(after, before / 2);
  const double speed = before / time;
  changed.samples_per_s *= speed;
  changed.tokens_per_s *= speed;
  changed.flops_per_s_per_rank *= speed;
  return changed;
}

/// As the search chooses: what comes first stays unless the other is clearly better.
bool change_places(Metric metric, const Measured& winner, const Measured& rival,
                   bool rival_comes_first) {
  return std::ranges::any_of(std::array{0.5, 2.0}, [&](double factor) {
    const Measured ours = with_host_time(winner, factor);
    const Measured theirs = with_host_time(rival, factor);
    return rival_comes_first ? !is_clearly_better(metric, ours, theirs)
                             : is_clearly_better(metric, theirs, ours);
  });
}

std::string overhead_remark(const HostOverhead& overhead) {
  const std::string_view preset = preset_of(overhead);
  if (preset == kNoOverhead)
    return "host overhead: none, so the step has no time of DeepSpeed's Python";
  if (preset.empty()) return "host overhead: the profile in dstune.host_overhead";
  return concat("host overhead: preset ", preset, ", no measurement of this machine");
}

const std::optional<DeviceUse>& use_of(const Record& record) {
  return std::get<Measured>(record.outcome).device_use;
}

/// The experiments on whose devices `holds`, and how many were measured.
struct Uses {
  std::vector<const Record*> found;
  std::size_t measured = 0;
};

template <class Condition>
Uses uses_where(const std::vector<Record>& records, Condition holds) {
  Uses uses;
  for (const Record& record : records) {
    if (measured_of(record) == nullptr) continue;
    ++uses.measured;
    if (use_of(record) && holds(*use_of(record))) uses.found.push_back(&record);
  }
  return uses;
}

}  // namespace

std::string spread_remark(const std::vector<Record>& records, Metric metric, const Record& best) {
  const std::string_view preset = preset_of(best.experiment.settings.host_overhead);
  const Measured* winner = deciding_measurement(best, records);
  if (preset.empty() || preset == kNoOverhead || winner == nullptr) return "";
  const int own_stage = make_step_config(best.experiment).stage;
  std::vector<std::string> orders;
  for (const auto& [stage, rival] : rivals_of(best, records, metric)) {
    if (!change_places(metric, *winner, *rival.measured, stage < own_stage)) continue;
    orders.push_back(stage == own_stage
                         ? concat(best.experiment.name, " before ", rival.record->experiment.name)
                         : concat("z", own_stage, " before z", stage));
  }
  if (orders.empty()) return "";
  return concat(join(orders, ", "), orders.size() == 1 ? " is" : " are",
                " within the preset's spread: calibrate (docs/host-overhead.md)");
}

std::string arithmetic_remark(const std::vector<Record>& records) {
  const bool is_any = std::ranges::any_of(records, [](const Record& record) {
    return measured_of(record) != nullptr && record.experiment.settings.backend == "cpu" &&
           make_step_config(record.experiment).dtype != DType::fp32;
  });
  if (!is_any) return "";
  return "on the CPU backend bf16 and fp16 are only stored: it computes in fp32, so the times are "
         "not those of 16-bit arithmetic";
}

std::string throttle_remark(const std::vector<Record>& records) {
  const Uses uses =
      uses_where(records, [](const DeviceUse& use) { return !use.throttle_reasons.empty(); });
  if (uses.found.empty()) return "";
  const Record* slowest = *std::ranges::min_element(uses.found, {}, [](const Record* record) {
    return use_of(*record)->sm_clock_share().value_or(1);
  });
  return concat("the GPU was held back in ", uses.found.size(), " of ", uses.measured,
                " experiments (most in ", slowest->experiment.name, ", ",
                throttle_text(*use_of(*slowest)), "): their times are not its best");
}

std::string sharing_remark(const std::vector<Record>& records) {
  const Uses uses =
      uses_where(records, [](const DeviceUse& use) { return use.other_processes > 0; });
  int most = 0;
  for (const Record* record : uses.found) most = std::max(most, use_of(*record)->other_processes);
  if (most == 0) return "";
  return concat(most, most == 1 ? " other process" : " other processes", " used the GPU in ",
                uses.found.size(), " of ", uses.measured,
                " experiments: their times are not its best");
}

std::string peak_remark(const std::vector<Record>& records, const Record& best) {
  const Measured* winner = deciding_measurement(best, records);
  const std::string share = winner == nullptr ? "" : share_of_peak(*winner);
  return share.empty() ? "" : concat(best.experiment.name, " runs at ", share);
}

std::string checkpointing_remark(const std::vector<Record>& records, const Record& best) {
  const auto chosen = make_step_config(best.experiment).checkpointing;
  if (chosen.is_on()) {
    return concat("activation checkpointing is the training program's to switch on: ",
                  how_to_switch_on(chosen));
  }
  const bool is_tuned = std::ranges::any_of(records, [](const Record& record) {
    return make_step_config(record.experiment).checkpointing.is_on();
  });
  return is_tuned ? "the optimum is without activation checkpointing: the training program must "
                    "not switch it on"
                  : "";
}

std::vector<std::string> result_remarks(const std::vector<Record>& records, Metric metric,
                                        const std::optional<Record>& best) {
  if (records.empty()) return {};
  std::vector<std::string> remarks = {
      overhead_remark(records.front().experiment.settings.host_overhead)};
  if (best) remarks.push_back(spread_remark(records, metric, *best));
  if (best) remarks.push_back(peak_remark(records, *best));
  if (best) remarks.push_back(checkpointing_remark(records, *best));
  remarks.push_back(arithmetic_remark(records));
  remarks.push_back(throttle_remark(records));
  remarks.push_back(sharing_remark(records));
  if (best) {
    for (const std::string& fault : known_faults(make_step_config(best->experiment))) {
      remarks.push_back(
          concat("warning: ", best->experiment.name, " may be fast and wrong: ", fault));
    }
  }
  std::erase(remarks, "");
  return remarks;
}

std::vector<std::string> result_remarks(const TuningResult& result, Metric metric) {
  auto remarks = result_remarks(result.records, metric, result.best);
  remarks.insert(remarks.end(), result.remarks.begin(), result.remarks.end());
  for (const auto& lost : result.lost_devices) {
    remarks.push_back(concat("a rank lost its device and got no more work: ", lost));
  }
  return remarks;
}

}  // namespace dstune
