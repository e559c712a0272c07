#include "core/search/predict/run_rates.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "core/device/backend_list.hpp"
#include "core/search/predict/dry_step.hpp"

namespace dstune {
namespace {

/// The rates that groups measured for one type of model, in the order of the records.
struct Measurements {
  Experiment machine;
  std::vector<MachineRates> groups;
};

std::vector<Measurements> by_type(const std::vector<Record>& records, int ranks) {
  std::vector<Measurements> types;
  for (const Record& record : records) {
    const auto* const measured = std::get_if<Measured>(&record.outcome);
    if (measured == nullptr || !measured->machine_rates || record.experiment.ranks != ranks) {
      continue;
    }
    const MachineRates& rates = *measured->machine_rates;
    const auto known = std::find_if(types.begin(), types.end(), [&](const Measurements& type) {
      return type.groups.front().dtype == rates.dtype;
    });
    if (known != types.end()) {
      known->groups.push_back(rates);
    } else {
      types.push_back({record.experiment, {rates}});
    }
  }
  return types;
}

/// The host's rates do not depend on the model's type, so that they were measured for one of them.
void share_host(std::vector<MachineRates>& types) {
  const auto known =
      std::ranges::find_if(types, [](const MachineRates& type) { return type.host.has_value(); });
  if (known == types.end()) return;
  const HostRates host = *known->host;
  for (MachineRates& type : types) {
    if (!type.host) type.host = host;
  }
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double spread_of(const Measurements& type) {
  Experiment step = type.machine;
  step.measures_machine = false;
  std::vector<double> times;
  for (const MachineRates& rates : type.groups) {
    const auto time = dry_step_time(step, rates);
    if (time) times.push_back(std::log(time->total()));
  }
  return deviation(times);
}

}  // namespace

const MachineRates& RunRates::of(DType dtype) const {
  const auto own = std::find_if(by_type_.begin(), by_type_.end(),
                                [&](const MachineRates& rates) { return rates.dtype == dtype; });
  return own == by_type_.end() ? by_type_.front() : *own;
}

std::optional<RunRates> run_rates(const std::vector<Record>& records, int ranks) {
  const auto types = by_type(records, ranks);
  if (types.empty()) return std::nullopt;
  std::vector<MachineRates> rates;
  rates.reserve(types.size());
  for (const Measurements& type : types) rates.push_back(typical(type.groups));
  share_host(rates);
  return RunRates(std::move(rates), spread_of(types.front()));
}

MachineRates estimated_rates(const RunSettings& settings) {
  const EstimatedRates estimated = traits_of_backend(settings.backend).rates;
  MachineRates rates{.overlaps = estimated.overlaps,
                     .flops_per_s = estimated.flops_per_s +
                                    estimated.flops_per_s_per_thread * settings.threads_per_rank,
                     .copy_bytes_per_s = estimated.copy_bytes_per_s,
                     .launch = estimated.launch};
  rates.collectives.fill(
      {.latency = estimated.collective_latency, .bytes_per_s = estimated.collective_bytes_per_s});
  return rates;
}

}  // namespace dstune
