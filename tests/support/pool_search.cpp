#include "tests/support/pool_search.hpp"

#include <cmath>

#include "core/base/statistics.hpp"

namespace dstune::testing_support {

Pool make_pool(const std::vector<Row>& rows) {
  Pool pool;
  for (const Row& row : rows) {
    PooledCandidate pooled;
    pooled.candidate.name = row.name;
    pooled.candidate.ds_config = {{"train_batch_size", 1},
                                  {"train_micro_batch_size_per_gpu", 1},
                                  {"gradient_accumulation_steps", 1},
                                  {"zero_optimization", {{"stage", row.stage}}}};
    pooled.point = {row.stage, 1, 1};
    pooled.dry.peak_memory.allocated = row.memory;
    pool.candidates.push_back(std::move(pooled));
  }
  return pool;
}

TableForecaster::TableForecaster(const std::vector<Row>& rows, bool learns) : learns_(learns) {
  for (const Row& row : rows) table_[row.name] = row.prediction;
}

Prediction TableForecaster::predict(const Experiment& experiment) {
  Prediction prediction = table_.at(experiment.name);
  if (!ratios_.empty()) prediction.step_time *= summarize(ratios_).median;
  return prediction;
}

std::vector<PhysicsGuess> TableForecaster::physics() {
  std::vector<PhysicsGuess> guesses;
  for (const Experiment& experiment : expected_) {
    const Prediction prediction = predict(experiment);
    guesses.push_back(
        {.log_time = std::log(prediction.step_time), .own_sd = prediction.relative_sd});
  }
  return guesses;
}

void TableForecaster::learn(const Experiment& experiment, const Measured& measured) {
  if (!learns_) return;
  ratios_.push_back(measured.step_time.median / table_.at(experiment.name).step_time);
}

Record make_record(const Candidate& candidate, Seconds step_time, int trial, double noise_percent) {
  Record record;
  record.experiment.name = candidate.name;
  record.experiment.ds_config = candidate.ds_config;
  record.experiment.repetition = candidate.repetition;
  record.started = trial;
  record.finished = trial + 1;
  if (step_time <= 0) {
    record.outcome = OutOfMemory{};
    return record;
  }
  Measured measured;
  measured.steps = 3;
  measured.step_time = {step_time, step_time, step_time, noise_percent};
  measured.samples_per_s = 1 / step_time;
  measured.flops_per_s_per_rank = 1e9 / step_time;
  record.outcome = measured;
  return record;
}

std::vector<std::string> PoolSearch::names() const {
  std::vector<std::string> names;
  for (const auto& batch : batches) names.insert(names.end(), batch.begin(), batch.end());
  return names;
}

PoolSearch search(Tuner& tuner, const StepTimeOf& step_time, int groups, std::size_t most) {
  PoolSearch done;
  while (done.records.size() < most) {
    const auto batch = tuner.next(groups);
    if (batch.empty()) break;
    auto& names = done.batches.emplace_back();
    for (const Candidate& candidate : batch) {
      names.push_back(candidate.name);
      done.records.push_back(
          make_record(candidate, step_time(candidate), static_cast<int>(done.records.size())));
      tuner.learn(done.records.back());
    }
  }
  return done;
}

PoolSearch search(Tuner& tuner, const std::vector<Row>& rows, int groups, std::size_t most) {
  std::map<std::string, Seconds> times;
  for (const Row& row : rows) times[row.name] = row.step_time;
  const auto step_time = [&](const Candidate& candidate) {
    const auto& name = candidate.name;
    return times.at(name.substr(0, name.find("_again")));
  };
  return search(tuner, step_time, groups, most);
}

}  // namespace dstune::testing_support
