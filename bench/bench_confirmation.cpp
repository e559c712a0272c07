// What the confirmation of an optimum, the printed intervals and the remark on slow steps are
// worth, by simulations whose truth is known. Usage: bench_confirmation [SEEDS]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/luck.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/report/tables/announced.hpp"
#include "core/report/tables/table.hpp"
#include "core/search/tuners/confirmation.hpp"
#include "core/search/tuners/contenders.hpp"

namespace dstune {
namespace {

/// Configurations of one stage whose true times differ, and how one run of them varies.
struct Truth {
  std::string name;
  std::vector<double> times;  ///< the fastest first
  bench::Noise noise;         ///< of a run
  double drift = 0;  ///< by which the last of all repetitions takes longer, little by little
};

/// Asks for every configuration once.
class Once final : public Tuner {
 public:
  explicit Once(std::size_t count) : count_(count) {}
  std::vector<Candidate> next(int /*free_groups*/) override {
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < count_; ++i) {
      DeepSpeedConfig config = {{"train_micro_batch_size_per_gpu", 1},
                                {"train_batch_size", 1},
                                {"gradient_accumulation_steps", 1},
                                {"gradient_clipping", static_cast<double>(i)},
                                {"zero_optimization", {{"stage", 1}}}};
      all.push_back({concat(i), std::move(config), 0});
    }
    count_ = 0;
    return all;
  }
  void learn(const Record& /*record*/) override {}
  std::optional<Record> best() override { return std::nullopt; }

 private:
  std::size_t count_;
};

Record record_of(const Candidate& candidate, double time, double noise, int number) {
  Measured measured;
  measured.steps = 9;
  measured.step_time = {time, time, time, 100 * noise / 2, 9};
  measured.samples_per_s = 1 / time;
  Record record;
  record.experiment.name = candidate.name;
  record.experiment.ds_config = candidate.ds_config;
  record.experiment.repetition = candidate.repetition;
  record.started = number;
  record.finished = number + 1;
  record.outcome = measured;
  return record;
}

struct Count {
  int ties = 0;           ///< all others are named as ties
  int false_winners = 0;  ///< a slower one is the optimum, and the fastest no tie
  int told = 0;           ///< the fastest is the optimum, without ties
  int covered = 0;        ///< the interval of the announced time holds the true one
  int repetitions = 0;
};

void confirm(const Truth& truth, std::uint64_t seed, Count& count) {
  bench::Luck luck(truth.noise, seed);
  Confirmation tuner(std::make_unique<Once>(truth.times.size()), Metric::throughput);
  std::vector<Record> records;
  int slots = 0;
  const double most_slots =
      kMostRepetitions * static_cast<double>(std::min<std::size_t>(truth.times.size(), 4));
  for (auto batch = tuner.next(1); !batch.empty(); batch = tuner.next(1)) {
    for (const Candidate& candidate : batch) {
      const double drift = candidate.repetition > 0 ? truth.drift * slots++ / most_slots : 0;
      const auto which = static_cast<std::size_t>(std::stoul(candidate.name));
      const double time = truth.times.at(which) * luck.next() * std::exp(drift);
      records.push_back(
          record_of(candidate, time, truth.noise.sd, static_cast<int>(records.size())));
      tuner.learn(records.back());
    }
  }
  const auto best = static_cast<std::size_t>(std::stoul(tuner.best()->experiment.name));
  const auto ties = tuner.ties();
  const bool is_fastest = truth.times[best] == truth.times.front();
  const bool fastest_is_tie = std::ranges::any_of(ties, [&](const std::string& name) {
    return truth.times.at(std::stoul(name)) == truth.times.front();
  });
  count.ties += ties.size() + 1 == truth.times.size() ? 1 : 0;
  count.false_winners += !is_fastest && !fastest_is_tie ? 1 : 0;
  count.told += is_fastest && ties.empty() ? 1 : 0;
  count.repetitions += static_cast<int>(records.size() - truth.times.size());
  const auto rows = announced(records);
  const double off =
      std::log(typical_step_time(*measured_of(rows[best].record)) / truth.times[best]);
  count.covered += std::abs(off) <= *rows[best].interval ? 1 : 0;
}

void print_confirmations(int seeds) {
  const std::vector<std::pair<std::string, std::vector<double>>> spaces = {
      {"2 alike", std::vector<double>(2, 1)},
      {"4 alike", std::vector<double>(4, 1)},
      {"40 alike", std::vector<double>(40, 1)},
      {"one 3 % slower", {1, 1.03}},
      {"one 5 % slower", {1, 1.05}},
      {"three 5 % slower", {1, 1.05, 1.05, 1.05}}};
  Table table({{"configurations", Table::Align::left},
               {"noise of a run", Table::Align::left},
               {"all named ties (%)"},
               {"a slower one announced without tie (%)"},
               {"the fastest told apart (%)"},
               {"repetitions"},
               {"interval covers (%)"}});
  struct Kind {
    const char* name;
    bench::Noise::Kind noise = bench::Noise::Kind::normal;
    double drift = 0;
  };
  const Kind kinds[] = {
      {""}, {", t with 3 degrees", bench::Noise::Kind::heavy}, {", drift of 5 %", {}, 0.05}};
  for (const auto& [name, times] : spaces) {
    for (const Kind& kind : kinds) {
      for (const double noise : {0.01, 0.03, 0.1}) {
        const Truth truth{name, times, {.sd = noise, .kind = kind.noise}, kind.drift};
        Count count;
        for (int seed = 1; seed <= seeds; ++seed) {
          confirm(truth, static_cast<std::uint64_t>(seed), count);
        }
        const auto percent = [&](int of) { return fixed(100.0 * of / seeds, 1); };
        table.add_row({name, concat(fixed(noise * 100, 0), " %", kind.name), percent(count.ties),
                       percent(count.false_winners), percent(count.told),
                       fixed(static_cast<double>(count.repetitions) / seeds, 1),
                       percent(count.covered)});
      }
    }
  }
  std::cout << "Confirmations, " << seeds << " seeds each\n\n" << table.to_string() << "\n";
}

/// Steps about `center`, of which neighbours correlate.
std::vector<double> steps_of(double center, double correlation, std::size_t count,
                             std::mt19937_64& generator) {
  constexpr double kSpread = 0.02;
  std::normal_distribution<double> normal;
  double state = normal(generator);
  std::vector<double> steps;
  for (std::size_t i = 0; i < count; ++i) {
    steps.push_back(center * (1 + kSpread * state));
    state = correlation * state + std::sqrt(1 - correlation * correlation) * normal(generator);
  }
  return steps;
}

void print_coverage(int tries) {
  constexpr double kBetweenRuns = 0.02;
  Table table({{"steps"},
               {"correlation of neighbours"},
               {"one run, its own median (%)"},
               {"one run, the configuration (%)"},
               {"3 runs, the configuration (%)"},
               {"6 runs, the configuration (%)"}});
  for (const std::size_t count : {3U, 9U, 20U, 60U}) {
    for (const double correlation : {0.0, 0.3, 0.6}) {
      std::mt19937_64 generator(1);
      std::normal_distribution<double> normal;
      int covered[4] = {};
      for (int i = 0; i < tries; ++i) {
        std::vector<Record> records;
        for (int run = 0; run <= 6; ++run) {
          const double center = std::exp(kBetweenRuns * normal(generator));
          Measured measured;
          measured.steps = static_cast<int>(count);
          measured.step_time = summarize(steps_of(center, correlation, count, generator));
          measured.samples_per_s = 1 / measured.step_time.median;
          records.push_back(record_of({concat(run), {}, run}, 1, 0, run));
          records.back().outcome = measured;
          const double off = std::abs(measured.step_time.median / center - 1);
          if (run == 0 && off <= *relative_interval(measured)) ++covered[0];
          if (run != 0 && run != 3 && run != 6) {
            continue;
          }
          const Announced row = announced(records).front();
          const double error = std::abs(std::log(typical_step_time(*measured_of(row.record))));
          if (error <= *row.interval) ++covered[run == 0 ? 1 : run == 3 ? 2 : 3];
        }
      }
      std::vector<std::string> cells = {concat(count), fixed(correlation, 1)};
      for (const int of : covered) cells.push_back(fixed(100.0 * of / tries, 1));
      table.add_row(std::move(cells));
    }
  }
  std::cout << "Coverage of +-, " << tries << " tries each; steps vary by 2 %, runs by 2 %\n\n"
            << table.to_string() << "\n";
}

void print_slow_parts() {
  constexpr int kSets = 1000;
  Table table({{"steps"},
               {"normal, noise of 2 % (of 1,000)"},
               {"normal, noise of 20 % (of 1,000)"},
               {"two modes 20 % apart, noise of 2 % (of 1,000)"},
               {"one step half as long again (of 1,000)"}});
  for (const std::size_t count : {6U, 9U, 12U, 20U, 60U}) {
    int found[4] = {};
    std::mt19937_64 generator(1);
    std::normal_distribution<double> normal;
    for (int i = 0; i < kSets; ++i) {
      std::vector<double> sets[4];
      for (std::size_t step = 0; step < count; ++step) {
        const double luck = normal(generator);
        sets[0].push_back(1 + 0.02 * luck);
        sets[1].push_back(1 + 0.2 * luck);
        sets[2].push_back(1 + 0.02 * luck + (generator() % 2 == 0 ? 0.2 : 0));
        sets[3].push_back(1 + 0.02 * luck + (step == 2 ? 0.5 : 0));
      }
      for (int kind = 0; kind < 4; ++kind) found[kind] += slow_part(sets[kind]) ? 1 : 0;
    }
    table.add_row(
        {concat(count), concat(found[0]), concat(found[1]), concat(found[2]), concat(found[3])});
  }
  std::cout << "Sets of steps that are said to have slow ones\n\n" << table.to_string();
}

}  // namespace
}  // namespace dstune

int main(int count, char** words) {
  const int seeds = count > 1 ? std::atoi(words[1]) : 200;
  dstune::print_confirmations(seeds);
  dstune::print_coverage(10 * seeds);
  dstune::print_slow_parts();
  return 0;
}
