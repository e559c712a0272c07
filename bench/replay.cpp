#include "bench/replay.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <set>
#include <variant>

#include "core/base/files/file.hpp"
#include "core/experiment/step_config.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/search/tuners/compare/score.hpp"

namespace dstune::bench {
namespace {

double score_of(const Table& table, const Record& record) {
  const Measured* measured = measured_of(record);
  return measured == nullptr ? 0 : score(table.metric, *measured);
}

Record with_noise(Record record, const Noise& noise, Luck& luck) {
  auto* measured = std::get_if<Measured>(&record.outcome);
  if (measured == nullptr) return record;
  const double factor = luck.next();
  measured->step_time.median *= factor;
  measured->samples_per_s /= factor;
  measured->flops_per_s_per_rank /= factor;
  measured->step_time.noise_percent = 100 * noise.sd;
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

Table table_of_journal(const std::string& path) {
  Table table;
  std::set<std::string> names;
  for (Record& record : read_own_journal(read_text_file(path), path).records) {
    const Experiment& experiment = record.experiment;
    const bool is_first = experiment.repetition == 0 && !experiment.measures_machine;
    if (is_first && names.insert(record.experiment.name).second) {
      table.records.push_back(std::move(record));
    }
  }
  return table;
}

Ending run_to_its_end(const Table& table, Tuner& tuner, const Noise& noise, std::uint64_t seed) {
  std::map<std::string, const Record*> records;
  for (const Record& record : table.records) records[record.experiment.name] = &record;
  Luck luck(noise, seed);
  Ending ending;
  std::set<std::string> tried;
  double time = 0;
  for (auto batch = tuner.next(1); !batch.empty(); batch = tuner.next(1)) {
    const Candidate& candidate = batch.front();
    const bool is_again = candidate.repetition > 0;
    const std::string first =
        is_again ? candidate.name.substr(0, candidate.name.rfind("_again")) : candidate.name;
    Record record = with_noise(*records.at(first), noise, luck);
    record.experiment.name = candidate.name;
    record.experiment.repetition = candidate.repetition;
    record.started = time;
    record.finished = ++time;
    tuner.learn(record);
    ++(is_again ? ending.repeated : ending.searched);
    tried.insert(first);
  }
  double untried = 0;
  for (const Record& record : table.records) {
    if (!tried.contains(record.experiment.name))
      untried = std::max(untried, score_of(table, record));
  }
  const auto best = tuner.best();
  const Record* truth = best ? records.at(best->experiment.name) : nullptr;
  if (truth == nullptr) {
    ending.regret = 1;
    return ending;
  }
  ending.regret = 1 - score_of(table, *truth) / table.best();
  ending.missed = untried / score_of(table, *truth) - 1;
  return ending;
}

Replay replay(const Table& table, Tuner& tuner, const ReplayOptions& options) {
  std::map<std::string, const Record*> records;
  for (const Record& record : table.records) records[record.experiment.name] = &record;
  const Noise noise{.sd = options.noise};
  Luck luck(noise, options.seed);
  const double best = table.best();
  double told = 0;  // the best score that the tuner has heard, and what it truly is:
  double true_score = 0;
  Replay result;
  while (options.most == 0 || result.regrets.size() < options.most || result.needed == 0) {
    const auto batch = tuner.next(1);
    if (batch.empty()) break;
    const Record& truth = *records.at(batch.front().name);
    const Record record = with_noise(truth, noise, luck);
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
