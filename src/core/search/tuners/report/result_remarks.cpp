#include "core/search/tuners/report/result_remarks.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/device/backend_list.hpp"
#include "core/experiment/step_config.hpp"
#include "core/search/space/known_faults.hpp"
#include "core/search/tuners/compare/deciding_measurement.hpp"
#include "core/search/tuners/compare/profile_ties.hpp"
#include "core/search/tuners/compare/tie_rule.hpp"
#include "core/search/tuners/report/offload_remarks.hpp"

namespace dstune {
namespace {

std::string overhead_remark(const HostOverhead& overhead) {
  const std::string_view preset = preset_of(overhead);
  if (preset == kNoOverhead)
    return "host overhead: none, so steps lack the time of PyTorch's and DeepSpeed's host code";
  if (preset.empty()) {
    const bool is_earlier =
        overhead.at(HostEvent::module_call) == 0 || overhead.at(HostEvent::micro_step) == 0;
    return concat("host overhead: ", describe(overhead),
                  is_earlier ? "; it lacks all or part of the time of eager PyTorch's own calls, "
                               "which a new calibration measures"
                             : "");
  }
  return concat("host overhead: preset ", preset,
                ", not measured on this machine: ", preset_cost(overhead));
}

const std::optional<DeviceUse>& use_of(const Record& record) {
  return std::get<Measured>(record.outcome).device_use;
}

/// The experiments for whose devices a condition holds, and how many experiments were measured.
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

/// How many times as fast the host's passes are as with one thread.
double gain_of_threads(int threads, const HostRates& host) {
  return host.pass_bytes_per_s(threads) / host.pass_bytes_per_s(1);
}
constexpr double kWorthSaying = 1.05;

std::string with_one_thread(int threads, const std::optional<HostRates>& host) {
  if (!host) return "and the update then takes longer";
  return concat("and the update then takes ", fixed(gain_of_threads(threads, *host), 1),
                " times as long, as measured");
}

std::string parameter_offload_remark(const Record& best) {
  const bool are_copied = std::ranges::any_of(
      measured_of(best)->ledger.transfers(),
      [](const TransferLine& line) { return line.purpose == TransferPurpose::parameter; });
  if (!are_copied) return "";
  const BackendTraits traits = traits_of_backend(best.experiment.settings.backend);
  if (traits.time_is_virtual) {
    return "the time of the copies of offloaded parameters is estimated from guessed rates of "
           "copies";
  }
  if (!traits.computes_on_host) return "";
  return "parameters were copied between device and host within one memory here, so the times of "
         "these copies are not those of a GPU's";
}

}  // namespace

std::string arithmetic_remark(const std::vector<Record>& records) {
  const bool is_any = std::ranges::any_of(records, [](const Record& record) {
    return measured_of(record) != nullptr &&
           traits_of_backend(record.experiment.settings.backend).only_stores_16_bits &&
           make_step_config(record.experiment).dtype != DType::fp32;
  });
  if (!is_any) return "";
  return "on the CPU backend bf16 and fp16 are only stored: it computes in fp32, so the times are "
         "not those of 16-bit arithmetic (except bf16 matrix products where oneDNN has them: see "
         "--verbose)";
}

std::string library_remark(const Record& best) {
  const RunSettings& settings = best.experiment.settings;
  const Measured* measured = measured_of(best);
  const DType dtype = make_step_config(best.experiment).dtype;
  if (measured == nullptr || !traits_of_backend(settings.backend).computes_on_host) return "";
  const Seconds wait = measured->ledger.library_wait();
  if (wait <= 0) {
    if (product_rate(settings.host_overhead, dtype, settings.threads_per_rank) == nullptr)
      return "";
    return concat("torch multiplies ", name_of(dtype),
                  " as fast as this program or faster, according to the profile: nothing is taken "
                  "off a step for that");
  }
  return concat("some ", name_of(dtype), " operations are slower in torch than here: a step of ",
                best.experiment.name, " waits ", format_seconds(wait),
                " for that, according to the profile");
}

std::string stand_in_remark(const Record& best) {
  const Measured* measured = measured_of(best);
  return measured == nullptr ? "" : join(measured->ledger.stand_ins(), "; ");
}

std::string offload_remark(const Record& best, const std::optional<HostRates>& host) {
  const Measured* measured = measured_of(best);
  if (measured == nullptr) return "";
  const bool is_updated_there =
      std::ranges::any_of(measured->ledger.host_passes(),
                          [](const HostPassLine& line) { return line.pass == MemoryPass::update; });
  if (!is_updated_there) return parameter_offload_remark(best);
  const RunSettings& settings = best.experiment.settings;
  if (traits_of_backend(settings.backend).time_is_virtual) {
    return "the time of the offloaded optimizer is estimated from guessed rates of copies and of "
           "the host's memory";
  }
  const int threads = settings.threads_per_rank;
  std::string remark = concat("the offloaded optimizer ran on ", threads,
                              threads == 1 ? " thread" : " threads", " of the host per rank");
  if (threads > 1 && (!host || gain_of_threads(threads, *host) >= kWorthSaying)) {
    remark += concat(": torchrun and accelerate give a rank one unless OMP_NUM_THREADS is set, ",
                     with_one_thread(threads, host),
                     "; start the training with OMP_NUM_THREADS=", threads,
                     ", or with deepspeed's --bind_cores_to_rank");
  }
  if (traits_of_backend(settings.backend).computes_on_host) {
    remark +=
        "; copies between device and host are within one memory here, so their times are not "
        "those of a GPU's";
  }
  return remark;
}

std::string accumulation_remark(const Record& best) {
  constexpr double kMatters = 0.1;
  const Measured* measured = measured_of(best);
  if (measured == nullptr || measured->step_time.median <= 0) return "";
  Seconds host = 0;
  for (const HostPassLine& line : measured->ledger.host_passes()) host += line.time;
  const double share = host / measured->step_time.median;
  if (share < kMatters || share > 1) return "";
  return concat(
      "the host's passes over what is offloaded take ", fixed(share * 100, 0),
      " % of a step, once per step: with twice the accumulation steps, where the training "
      "allows the larger batch, a sample takes ",
      fixed(share * 50, 0), " % less");
}

std::string cores_remark(const std::vector<Record>& records) {
  constexpr double kEnough = 0.75;
  std::vector<double> shares;
  for (const Record& record : records) {
    if (measured_of(record) == nullptr) continue;
    for (const CoreUse& use : measured_of(record)->core_use) {
      if (use.wanted > 0) shares.push_back(core_share(use));
    }
  }
  const double usual = shares.empty() ? 1 : summarize(shares).median;
  if (usual >= kEnough) return "";
  return concat("while they computed, the ranks had ", fixed(usual * 100, 0),
                " % of a core (median): the machine is shared, limited or has fewer cores than "
                "ranks, and the times are not its best");
}

std::string slow_steps_remark(const std::vector<Record>& records) {
  constexpr std::size_t kMostNamed = 5;
  std::vector<std::string> found;
  for (const Record& record : records) {
    const Measured* measured = measured_of(record);
    if (measured == nullptr || !measured->slow_steps) continue;
    const SlowPart& slow = *measured->slow_steps;
    const bool is_mode = slow.count >= std::max(2, measured->steps / 4);
    found.push_back(concat(record.experiment.name, " (", is_mode ? "two modes" : "a heavy tail",
                           ": ", slow.count, " of ", measured->steps, " steps took ",
                           fixed(slow.longer * 100, 0), " % longer)"));
  }
  if (found.empty()) return "";
  const std::size_t more = found.size() - std::min(found.size(), kMostNamed);
  found.resize(found.size() - more);
  return concat("some steps took much longer than the others, as if something else ran at times: ",
                join(found, ", "), more == 0 ? "" : concat(" and ", more, " more"));
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
  const auto winner = deciding_measurement(best, records);
  const std::string share = winner ? share_of_peak(*winner) : "";
  return share.empty() ? "" : concat(best.experiment.name, " runs at ", share);
}

std::string choice_remark(const std::vector<Record>& records, Metric metric, const Record& best) {
  const std::string reason = choice_reason(records, metric, best);
  return reason == kFastest ? "" : concat(best.experiment.name, " is the optimum: ", reason);
}

std::string checkpointing_remark(const std::vector<Record>& records, const Record& best) {
  const auto chosen = make_step_config(best.experiment).checkpointing;
  if (chosen.is_on()) {
    return concat("activation checkpointing must be switched on by the training program: ",
                  how_to_switch_on(chosen));
  }
  const bool is_tuned = std::ranges::any_of(records, [](const Record& record) {
    return make_step_config(record.experiment).checkpointing.is_on();
  });
  return is_tuned ? "the optimum uses no activation checkpointing: the training program must "
                    "not switch it on"
                  : "";
}

std::vector<std::string> result_remarks(const std::vector<Record>& records, Metric metric,
                                        const std::optional<Record>& best,
                                        const std::optional<HostRates>& host) {
  if (records.empty()) return {};
  std::vector<std::string> remarks = {
      overhead_remark(records.front().experiment.settings.host_overhead)};
  if (best) remarks.push_back(choice_remark(records, metric, *best));
  if (best) remarks.push_back(profile_ties_remark(records, metric, *best));
  if (best) remarks.push_back(peak_remark(records, *best));
  if (best) remarks.push_back(checkpointing_remark(records, *best));
  if (best) remarks.push_back(library_remark(*best));
  if (best) remarks.push_back(stand_in_remark(*best));
  if (best) remarks.push_back(offload_remark(*best, host));
  if (best) remarks.push_back(accumulation_remark(*best));
  if (best) remarks.push_back(ratio_remark(best->experiment));
  if (best) remarks.push_back(sums_remark(*best));
  if (best) remarks.push_back(drive_remark(*best));
  remarks.push_back(arithmetic_remark(records));
  remarks.push_back(cores_remark(records));
  remarks.push_back(slow_steps_remark(records));
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
  auto remarks = result_remarks(result.records, metric, result.best, result.host_rates);
  remarks.insert(remarks.end(), result.remarks.begin(), result.remarks.end());
  for (const auto& lost : result.lost_devices) {
    remarks.push_back(concat("a rank lost its device and got no more work: ", lost));
  }
  for (const auto& slow : result.slow_workers) remarks.push_back(concat("a slow rank: ", slow));
  return remarks;
}

}  // namespace dstune
