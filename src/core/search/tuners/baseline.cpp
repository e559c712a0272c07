#include "core/search/tuners/baseline.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/report/tables/announced.hpp"
#include "core/search/tuners/compare/score.hpp"

namespace dstune {
namespace {

constexpr int kRepetitions = 2;

/// `total` / (`ranks` * `factor`); none if that is no whole number of at least 1.
std::optional<std::int64_t> rest_of(std::int64_t total, std::int64_t ranks, std::int64_t factor) {
  const std::int64_t product = ranks * factor;
  if (total < product || total % product != 0) return std::nullopt;
  return total / product;
}

}  // namespace

std::optional<Candidate> baseline_of(const TuningConfig& config, int group_size) {
  if (!config.given_point) return std::nullopt;
  const GivenPoint& given = *config.given_point;
  const auto& total = config.objective.train_batch_size;
  auto micro_batch = given.micro_batch;
  auto accumulation = given.accumulation_steps;
  if (total && micro_batch) accumulation = rest_of(*total, group_size, *micro_batch);
  if (total && !micro_batch) micro_batch = rest_of(*total, group_size, accumulation.value_or(1));
  if (!total && !accumulation) accumulation = 1;
  if (!micro_batch || !accumulation) return std::nullopt;
  return make_candidate(config, group_size, {given.stage, *micro_batch, *accumulation});
}

BaselineTuner::BaselineTuner(std::unique_ptr<Tuner> tuner, Candidate baseline, Metric metric)
    : tuner_(std::move(tuner)), candidate_(std::move(baseline)), metric_(metric) {}

std::vector<Candidate> BaselineTuner::next(int free_groups) {
  if (!baseline_) return {candidate_};
  auto candidates = tuner_->next(free_groups);
  for (const Candidate& candidate : candidates) asked_.insert(candidate.name);
  if (!candidates.empty()) return candidates;
  auto again = repetition();
  if (!again) return {};
  return {*std::move(again)};
}

void BaselineTuner::learn(const Record& record) {
  if (record.experiment.repetition > 0) repeated_.push_back(record);
  if (!baseline_ && record.experiment.name == candidate_.name) baseline_ = record;
  if (asked_.contains(record.experiment.name)) tuner_->learn(record);
}

std::optional<Record> BaselineTuner::best() {
  auto best = tuner_->best();
  if (!baseline_ || measured_of(*baseline_) == nullptr) return best;
  // A search that was stopped, or found nothing that runs, still has this.
  if (!best) return baseline_;
  if (last_repetition(*best) == 0 || last_repetition(*baseline_) == 0) return best;
  const bool is_slower =
      score(metric_, mean_of_repetitions(*best)) < score(metric_, mean_of_repetitions(*baseline_));
  return is_slower ? baseline_ : best;
}

std::vector<const Record*> BaselineTuner::repetitions(const Record& record) const {
  std::vector<const Record*> own;
  for (const Record& repeated : repeated_) {
    const bool is_own = repeated.experiment.ds_config == record.experiment.ds_config;
    if (is_own) own.push_back(&repeated);
  }
  return own;
}

int BaselineTuner::last_repetition(const Record& record) const {
  int last = 0;
  for (const Record* own : repetitions(record)) last = std::max(last, own->experiment.repetition);
  return last;
}

Measured BaselineTuner::mean_of_repetitions(const Record& record) const {
  std::vector<const Measured*> runs;
  for (const Record* own : repetitions(record)) {
    if (measured_of(*own) != nullptr) runs.push_back(measured_of(*own));
  }
  return runs.empty() ? *measured_of(record) : mean_of(std::move(runs));
}

std::optional<Candidate> BaselineTuner::repetition() {
  const auto best = tuner_->best();
  const bool is_compared = best && measured_of(*baseline_) != nullptr &&
                           best->experiment.ds_config != baseline_->experiment.ds_config;
  if (!is_compared) return std::nullopt;
  const int of_best = last_repetition(*best);
  const int of_baseline = last_repetition(*baseline_);
  if (of_best >= kRepetitions && of_baseline >= kRepetitions) return std::nullopt;
  // There and back, as in the confirmation: a drift that is steady is then the same for both.
  const bool is_way_back = of_best % 2 == 1 && of_baseline % 2 == 1;
  const bool is_best =
      of_best < kRepetitions && (of_best < of_baseline || (of_best == of_baseline && is_way_back));
  const Experiment& experiment = (is_best ? *best : *baseline_).experiment;
  const int number = (is_best ? of_best : of_baseline) + 1;
  return Candidate{concat(experiment.name, "_again", number), experiment.ds_config, number};
}

}  // namespace dstune
