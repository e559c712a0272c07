// How many measurements tuners need: each replayed against an exhaustive measurement, which is that
// of a journal or one on the simulated machine.
//
// usage: bench_search JOURNAL|sim:RANKS [seeds=100] [noise=0] [rates=the backend's]
//   noise  standard deviation, in percent, of what the tuners are told; the truth is the table's
//   rates  cpu, cuda or sim: whose the predictor believes at first

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/replay.hpp"
#include "bench/sim_table.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/search/predict/forecaster.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/search/tuners/tuner_table.hpp"

namespace dstune {
namespace {

using bench::Replay;
using bench::Table;

constexpr std::size_t kLongest = 40;

Table read_table(const std::string& source) {
  constexpr std::string_view kSim = "sim:";
  if (source.starts_with(kSim)) {
    return bench::measure_on_sim("examples/gpt2-30m", std::atoi(source.c_str() + kSim.size()));
  }
  return bench::table_of_journal(source);
}

/// Everything that replays share.
struct Setting {
  const Table& table;
  TuningConfig config;
  int ranks;
  const StepTimePredictor& predictor;  ///< has seen every configuration, learnt nothing
  double noise;
  std::vector<StagePlan> no_stages = {};

  std::unique_ptr<Tuner> make(std::string_view name, Pool pool) const {
    const auto forecaster = [this] { return std::make_unique<StepTimeForecaster>(predictor); };
    return make_pool_tuner(name, {config, ranks, no_stages, {}, forecaster}, std::move(pool));
  }
};

std::vector<Replay> replay_all(Setting setting, std::string_view name, int seeds, bool in_order,
                               bool to_its_end) {
  std::vector<Replay> replays;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    setting.config.settings.seed = number;
    const auto tuner = setting.make(name, bench::pool_of(setting.table, in_order ? 0 : number));
    replays.push_back(bench::replay(setting.table, *tuner,
                                    {number, setting.noise, to_its_end ? 0 : kLongest, 0.01}));
  }
  return replays;
}

/// Percent, the mean over the replays after `count` measurements, or at their ends.
double mean_regret(const std::vector<Replay>& replays, std::size_t count) {
  double sum = 0;
  for (const Replay& replay : replays) {
    sum += replay.regrets.at(std::min(count, replay.regrets.size()) - 1);
  }
  return 100 * sum / static_cast<double>(replays.size());
}

std::size_t quantile(std::vector<std::size_t> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void print_row(const std::string& name, const std::vector<Replay>& replays, std::size_t size) {
  std::vector<std::size_t> needed;
  double sum = 0;
  for (const Replay& replay : replays) {
    needed.push_back(replay.needed == 0 ? size : replay.needed);
    sum += static_cast<double>(needed.back());
  }
  std::cout << "| " << name << " | " << std::fixed << std::setprecision(1)
            << sum / static_cast<double>(needed.size()) << " | " << quantile(needed, 0.5) << " | "
            << quantile(needed, 0.9) << std::setprecision(2);
  for (const std::size_t count : {std::size_t{10}, std::size_t{20}, kLongest}) {
    std::cout << " | " << mean_regret(replays, count);
  }
  std::cout << " |\n" << std::flush;
}

void print_end(const std::vector<Replay>& replays) {
  std::vector<std::size_t> lengths;
  lengths.reserve(replays.size());
  for (const Replay& replay : replays) lengths.push_back(replay.regrets.size());
  std::cout << "\nguided stops by itself after " << quantile(lengths, 0.5) << " (median; "
            << quantile(lengths, 0) << " to " << quantile(lengths, 1)
            << ") measurements, with a regret of " << std::setprecision(2)
            << mean_regret(replays, replays.front().regrets.size() + lengths.size() * 1000)
            << " % (mean).\n";
}

void run(const Table& table, int seeds, double noise, const std::string& rates) {
  const Experiment& first = table.records.front().experiment;
  RunSettings settings = first.settings;
  if (!rates.empty()) settings.backend = rates;
  StepTimePredictor predictor(estimated_rates(settings));
  for (const Record& record : table.records) predictor.predict(record.experiment);
  Setting setting{table, {}, first.ranks, predictor, noise};
  setting.config.settings = first.settings;
  setting.config.autotuning.tuner_num_trials = static_cast<int>(table.records.size());
  setting.config.autotuning.tuner_early_stopping = setting.config.autotuning.tuner_num_trials;
  setting.config.stop_at_chance = 0;

  const std::size_t size = table.records.size();
  std::cout << size << " configurations, " << seeds << " seeds, noise " << 100 * noise << " %\n\n"
            << "| tuner | to 1 % of the best: mean | median | 90 % | regret (%) after 10 | 20 | 40 "
               "|\n| :-- | --: | --: | --: | --: | --: | --: |\n";
  for (const std::string name : {"gridsearch", "random", "model_based", "guided"}) {
    const bool in_order = name == "gridsearch" || name == "random";
    print_row(name, replay_all(setting, name, seeds, in_order, false), size);
  }
  setting.config.stop_at_chance = TuningConfig().stop_at_chance;
  print_end(replay_all(setting, "guided", seeds, false, true));
}

}  // namespace
}  // namespace dstune

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments.size() > 4) {
    std::cerr << "usage: bench_search JOURNAL|sim:RANKS [seeds=100] [noise=0] [rates]\n";
    return 2;
  }
  const auto given = [&](std::size_t i, const char* other) {
    return arguments.size() > i ? arguments[i] : other;
  };
  const dstune::bench::Table table = dstune::read_table(arguments[0]);
  if (table.records.empty()) {
    std::cerr << arguments[0] << " holds no measurement\n";
    return 1;
  }
  dstune::run(table, std::stoi(given(1, "100")), std::stod(given(2, "0")) / 100, given(3, ""));
}
