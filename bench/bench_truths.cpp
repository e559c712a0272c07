// How well searches end where the truth is not what the predictor believes: each tuner against a
// table whose times are changed by name (truths.hpp), told with noise, until its own end.
//
// usage: bench_truths JOURNAL|sim:RANKS [seeds=30] [noise=0,3,10|json] [only=TEXT]
//   noise  standard deviations, in percent, of what the tuners are told, each of which may end in
//          "heavy" or "drift" (luck.hpp); "json": prints the truths, for optuna_on_truths.py
//   only   the truths whose names contain the text
//
// The baselines measure as often as guided did, repetitions included, and announce the best that
// they were told: "physics" in the order of the prediction by the machine's true rates, before the
// truth changed it; "largest" the largest micro-batch first, of each the lowest stage; "random".
// "residuals" is guided without physics, which ends by itself.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/bed.hpp"
#include "bench/replay.hpp"
#include "bench/truths.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/search/predict/forecaster.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/search/tuners/compare/score.hpp"
#include "core/search/tuners/confirmation.hpp"
#include "core/search/tuners/guided_tuner.hpp"
#include "core/search/tuners/tuner_table.hpp"

namespace dstune {
namespace {

using bench::Bed;
using bench::Case;
using bench::Table;

constexpr double kWithin = 0.01;

/// Physics that knows nothing but that times are positive.
class NoPhysics final : public Forecaster {
 public:
  Prediction predict(const Experiment&) override { return {1, 1}; }
  void expect(std::vector<Experiment> experiments) override { count_ = experiments.size(); }
  std::vector<PhysicsGuess> physics() override {
    PhysicsGuess guess;
    guess.log_time = center_;
    guess.directions[kStepParts] = 1;
    return std::vector<PhysicsGuess>(count_, guess);
  }
  void learn(const Experiment&, const Measured& measured) override {
    center_ = std::log(typical_step_time(measured));
  }

 private:
  std::size_t count_ = 0;
  double center_ = 0;
};

struct Row {
  std::vector<double> regrets;  ///< by kTuners
  std::size_t used = 0;
  std::size_t searched = 0;
  double said = 1;
  bool was_better = false;
};
constexpr std::array<std::string_view, 5> kTuners{"guided", "physics", "largest", "residuals",
                                                  "random"};

/// The regret of whoever measures `order`'s first `count` and takes the best that it is told.
double regret_of_order(const Table& truth, const std::vector<std::size_t>& order, std::size_t count,
                       const bench::Noise& noise, std::uint64_t seed) {
  bench::Luck luck(noise, seed);
  double told = 0;
  double got = 0;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) {
    const double speed = score(truth.metric, *measured_of(truth.records[order[i]]));
    const double heard = speed / luck.next();
    if (heard > told) std::tie(told, got) = std::pair(heard, speed);
  }
  return 1 - got / truth.best();
}

std::vector<std::size_t> sorted_by(const std::vector<Case>& cases, auto key) {
  std::vector<std::size_t> order(cases.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return key(cases[i]); });
  return order;
}

/// Runs a tuner that is made for this replay to its own end, and its confirmation.
template <class Made>
bench::Ending run_confirmed(const Table& truth, std::unique_ptr<Made> tuner,
                            const bench::Noise& noise, std::uint64_t seed) {
  Confirmation confirmed(std::move(tuner), truth.metric);
  return bench::run_to_its_end(truth, confirmed, noise, seed);
}

Row replay_once(const Bed& bed, const StepTimePredictor& predictor, const Table& truth,
                const std::vector<std::size_t>& by_physics, const bench::Noise& noise,
                std::uint64_t seed) {
  Row row;
  TuningConfig config = bed.config;
  config.settings.seed = seed;
  const auto make_guided = [&](std::unique_ptr<Forecaster> forecaster) {
    return std::make_unique<GuidedTuner>(config, bed.ranks, bench::pool_of(truth, seed),
                                         std::move(forecaster));
  };
  auto guided = make_guided(std::make_unique<StepTimeForecaster>(predictor));
  GuidedTuner& inside = *guided;
  Confirmation confirmed(std::move(guided), truth.metric);
  const bench::Ending ending = bench::run_to_its_end(truth, confirmed, noise, seed);
  row.searched = ending.searched;
  row.used = ending.searched + ending.repeated;
  row.said = inside.outlook().chance_of_any;
  row.was_better = ending.missed > kBetterBy;
  const auto largest = sorted_by(bed.cases, [](const Case& one) {
    return std::tuple(-one.step.micro_batch, one.step.stage, one.step.checkpointing.is_on());
  });
  std::vector<std::size_t> shuffled = largest;
  std::mt19937_64 generator(seed);
  std::ranges::shuffle(shuffled, generator);
  row.regrets = {
      ending.regret, regret_of_order(truth, by_physics, row.used, noise, seed),
      regret_of_order(truth, largest, row.used, noise, seed),
      run_confirmed(truth, make_guided(std::make_unique<NoPhysics>()), noise, seed).regret,
      regret_of_order(truth, shuffled, row.used, noise, seed)};
  return row;
}

double mean(const std::vector<Row>& rows, auto number) {
  double sum = 0;
  for (const Row& row : rows) sum += static_cast<double>(number(row));
  return sum / static_cast<double>(rows.size());
}

void print_row(std::string_view name, const std::vector<Row>& rows) {
  std::cout << "| " << name << std::fixed << std::setprecision(1);
  for (std::size_t tuner = 0; tuner < kTuners.size(); ++tuner) {
    std::cout << " | " << 100 * mean(rows, [&](const Row& row) { return row.regrets[tuner]; });
  }
  std::cout << " | " << std::setprecision(0)
            << 100 * mean(rows, [](const Row& row) { return row.regrets[0] <= kWithin ? 1 : 0; })
            << " | " << std::setprecision(1)
            << mean(rows, [](const Row& row) { return row.searched; }) << " + "
            << mean(rows, [](const Row& row) { return row.used - row.searched; }) << " |\n"
            << std::flush;
}

/// Of the replays in which guided said at most so much: the part in which there was a better one.
void print_calibration(const std::vector<Row>& rows) {
  std::cout
      << "\n| said: at most (%) | replays | of them with a better one (%) |\n| --: | --: | --: |\n";
  for (const double said : {0.001, 0.01, 0.05, 0.2, 1.0}) {
    std::vector<Row> below;
    std::ranges::copy_if(rows, std::back_inserter(below),
                         [&](const Row& row) { return row.said <= said; });
    std::cout << "| " << std::setprecision(1) << 100 * said << " | " << below.size() << " | "
              << (below.empty() ? 0
                                : 100 * mean(below, [](const Row& row) { return row.was_better; }))
              << " |\n";
  }
}

/// A line with the configurations, and one for each truth and seed with their scores.
void print_truths(const Bed& bed, int seeds, std::string_view only) {
  json::array configurations;
  for (const Record& record : bed.table.records) {
    configurations.push_back(record.experiment.ds_config.json());
  }
  std::cout << to_json_text(configurations, 0) << "\n";
  for (const auto& [name, table_of] : bench::tables_of_truths(bed, only)) {
    for (int seed = 1; seed <= seeds; ++seed) {
      const Table truth = table_of(static_cast<std::uint64_t>(seed));
      json::array scores;
      for (const Record& record : truth.records) {
        scores.push_back(score(truth.metric, *measured_of(record)));
      }
      std::cout << to_json_text(json::object{{"truth", name}, {"seed", seed}, {"scores", scores}},
                                0)
                << "\n";
    }
  }
}

void run(const Bed& bed, int seeds, const std::string& noise_text, std::string_view only) {
  const bench::Noise noise = bench::noise_from(noise_text);
  std::cout << "\n"
            << bed.cases.size() << " configurations, " << seeds << " seeds, noise " << noise_text
            << " %: regret (%)\n\n| truth";
  for (const std::string_view tuner : kTuners) std::cout << " | " << tuner;
  std::cout << " | guided within 1 % | measurements |\n| :-- ";
  for (std::size_t i = 0; i < kTuners.size() + 2; ++i) std::cout << "| --: ";
  std::cout << "|\n";
  StepTimePredictor predictor(estimated_rates(bed.config.settings));
  for (const Record& record : bed.table.records) predictor.predict(record.experiment);
  const auto by_physics = sorted_by(bed.cases, [&](const Case& one) {
    return one.physics.total() / static_cast<double>(one.step.train_batch(bed.ranks));
  });
  std::vector<Row> all;
  for (const auto& [name, table_of] : bench::tables_of_truths(bed, only)) {
    std::vector<Row> rows;
    for (int seed = 1; seed <= seeds; ++seed) {
      const auto number = static_cast<std::uint64_t>(seed);
      rows.push_back(replay_once(bed, predictor, table_of(number), by_physics, noise, number));
    }
    print_row(name, rows);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  print_row("all", all);
  print_calibration(all);
}

}  // namespace
}  // namespace dstune

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments.size() > 4) {
    std::cerr << "usage: bench_truths JOURNAL|sim:RANKS [seeds=30] [noise=0,3,10|json] [only]\n";
    return 2;
  }
  const auto given = [&](std::size_t i, const char* other) {
    return arguments.size() > i ? arguments[i] : std::string(other);
  };
  const dstune::bench::Bed bed = dstune::bench::make_bed(arguments[0]);
  const std::string only = given(3, "");
  const int seeds = std::stoi(given(1, "30"));
  if (given(2, "") == "json") {
    dstune::print_truths(bed, seeds, only);
    return 0;
  }
  for (const std::string& noise : dstune::split(given(2, "0,3,10"), ',')) {
    dstune::run(bed, seeds, noise, only);
  }
} catch (const std::exception& fault) {
  std::cerr << fault.what() << '\n';
  return 1;
}
