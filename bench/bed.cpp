#include "bench/bed.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <utility>
#include <variant>

#include "bench/sim_table.hpp"
#include "core/experiment/step_config.hpp"
#include "core/search/predict/dry_step.hpp"
#include "core/search/predict/run_rates.hpp"

namespace dstune::bench {
namespace {

double peak_of(const Record& record) {
  const Measured* measured = measured_of(record);
  return measured == nullptr ? 0 : static_cast<double>(measured->peak_memory.counted());
}

Bed bed_of(Table measured) {
  Bed bed;
  bed.table = std::move(measured);
  const Experiment& first = bed.table.records.front().experiment;
  bed.config.settings = first.settings;
  bed.ranks = first.ranks;
  std::vector<double> peaks;
  peaks.reserve(bed.table.records.size());
  for (const Record& record : bed.table.records) peaks.push_back(peak_of(record));
  std::ranges::sort(peaks);
  const double limit = peaks[peaks.size() * 85 / 100];
  bed.config.settings.memory_limit = static_cast<Bytes>(limit);
  std::erase_if(bed.table.records, [&](const Record& record) { return peak_of(record) > limit; });
  const RunRates rates(estimated_rates(bed.config.settings));
  for (const Record& record : bed.table.records) {
    bed.cases.push_back({make_step_config(record.experiment),
                         *dry_step_time(record.experiment, rates),
                         typical_step_time(*measured_of(record)), peak_of(record) / limit});
  }
  bed.config.autotuning.tuner_num_trials = TuningConfig().autotuning.tuner_num_trials;
  bed.config.autotuning.tuner_early_stopping = bed.config.autotuning.tuner_num_trials;
  return bed;
}

/// What rates that are wrong by 15 % each do to a table that is physics itself.
std::vector<double> wrong_rates(const Bed& bed, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  PartFactors parts{};
  for (double& part : parts) {
    part = bed.is_physics_the_truth ? std::exp(0.15 * std::normal_distribution<double>()(generator))
                                    : 1;
  }
  std::vector<double> factors;
  factors.reserve(bed.cases.size());
  for (const Case& one : bed.cases) {
    double sum = 0;
    for (std::size_t i = 0; i < kStepParts; ++i) sum += parts[i] * one.physics.parts[i];
    factors.push_back(sum / one.physics.total());
  }
  return factors;
}

/// The bed's table, its times multiplied by `factors` and by what wrong rates do.
Table changed(const Bed& bed, std::uint64_t seed, const std::vector<double>& factors) {
  const std::vector<double> rates = wrong_rates(bed, seed);
  Table changed = bed.table;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double factor = factors[i] * rates[i];
    auto& measured = std::get<Measured>(changed.records[i].outcome);
    measured.step_time.median *= factor;
    measured.step_time.min *= factor;
    measured.samples_per_s /= factor;
  }
  return changed;
}

}  // namespace

Bed make_bed(const std::string& source) {
  constexpr std::string_view kSim = "sim:";
  if (!source.starts_with(kSim)) return bed_of(table_of_journal(source));
  Bed bed = bed_of(measure_on_sim("examples/gpt2-30m", std::atoi(source.c_str() + kSim.size())));
  bed.is_physics_the_truth = true;
  return bed;
}

std::vector<TableOfTruth> tables_of_truths(const Bed& bed, std::string_view only) {
  std::vector<TableOfTruth> tables;
  const auto add = [&](std::string_view name, auto factors) {
    if (name.find(only) == std::string_view::npos) return;
    tables.push_back({name, [&bed, factors](std::uint64_t seed) {
                        return changed(bed, seed, factors(bed.cases, seed));
                      }});
  };
  for (const Truth& truth : truths()) {
    add(truth.name, [&truth](const std::vector<Case>& cases, std::uint64_t /*seed*/) {
      std::vector<double> factors;
      for (const Case& one : cases) factors.push_back(truth.factor(one));
      return factors;
    });
  }
  for (const DrawnTruth& truth : drawn_truths()) add(truth.name, truth.factors);
  return tables;
}

}  // namespace dstune::bench
