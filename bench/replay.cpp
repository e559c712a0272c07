#include "bench/replay.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <variant>

#include "core/experiment/step_config.hpp"
#include "core/search/tuners/compare/score.hpp"

namespace dstune::bench {
namespace {

double score_of(const Table& table, const Record& record) {
  const Measured* measured = measured_of(record);
  return measured == nullptr ? 0 : score(table.metric, *measured);
}

Record with_noise(Record record, double noise, std::mt19937_64& generator) {
  auto* measured = std::get_if<Measured>(&record.outcome);
  if (measured == nullptr || noise <= 0) return record;
  const double factor = std::exp(noise * std::normal_distribution<double>()(generator));
  measured->step_time.median *= factor;
  measured->samples_per_s /= factor;
  measured->flops_per_s_per_rank /= factor;
  measured->step_time.noise_percent = 100 * noise;
  return record;
}

}  // namespace

double Table::best() const {
  double best = 0;
  for (const Record& record : records) best = std::max(best, score_of(*this, record));
  return best;
}

Pool pool_of(const Table& table, std::uint64_t seed) {
  Pool pool;
  for (const Record& record : table.records) {
    PooledCandidate pooled;
    pooled.candidate = {record.experiment.name, record.experiment.ds_config};
    const StepConfig step = make_step_config(record.experiment);
    pooled.point = {step.stage, step.micro_batch, step.accumulation_steps};
    if (const Measured* measured = measured_of(record)) {
      pooled.dry.peak_memory = measured->peak_memory;
    }
    pool.candidates.push_back(std::move(pooled));
  }
  std::mt19937_64 generator(seed);
  if (seed != 0) std::ranges::shuffle(pool.candidates, generator);
  return pool;
}

Replay replay(const Table& table, Tuner& tuner, const ReplayOptions& options) {
  std::map<std::string, const Record*> records;
  for (const Record& record : table.records) records[record.experiment.name] = &record;
  std::mt19937_64 generator(options.seed);
  const double best = table.best();
  double told = 0;  // the best score that the tuner has heard, and what it truly is:
  double true_score = 0;
  Replay result;
  while (options.most == 0 || result.regrets.size() < options.most || result.needed == 0) {
    const auto batch = tuner.next(1);
    if (batch.empty()) break;
    const Record& truth = *records.at(batch.front().name);
    const Record record = with_noise(truth, options.noise, generator);
    tuner.learn(record);
    if (score_of(table, record) > told) {
      told = score_of(table, record);
      true_score = score_of(table, truth);
    }
    result.regrets.push_back(1 - true_score / best);
    if (result.needed == 0 && true_score >= best * (1 - options.close)) {
      result.needed = result.regrets.size();
    }
  }
  return result;
}

}  // namespace dstune::bench
