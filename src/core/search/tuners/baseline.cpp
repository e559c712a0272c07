#include "core/search/tuners/baseline.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
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

/// Whether `text` goes on at `position` with more of a name than the end of a repetition's.
bool is_longer_name(std::string_view text, std::size_t position) {
  const std::string_view rest = text.substr(std::min(position, text.size()));
  if (rest.empty() || rest.starts_with("_again")) return false;
  const auto letter = static_cast<unsigned char>(rest.front());
  return std::isalnum(letter) != 0 || letter == '_' || letter == '+' ||
         (letter == '.' && rest.size() > 1 && rest[1] != ' ');
}

/// `text` with the name `to` in place of the name `from`, also in the names of its repetitions.
std::string renamed(const std::string& text, const std::string& from, const std::string& to) {
  std::string result;
  std::size_t begin = 0;
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) {
    const std::size_t end = at + from.size();
    if (is_longer_name(text, end)) continue;
    result.append(text, begin, at - begin).append(to);
    begin = end;
  }
  return result.append(text, begin, std::string::npos);
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

void BaselineTuner::tell_of_baseline() {
  Record twin = *baseline_;
  twin.experiment.name = twin_;
  tuner_->learn(twin);
}

std::vector<Candidate> BaselineTuner::next_inside(int free_groups) {
  std::vector<Candidate> shown;
  for (bool goes_on = true; goes_on && shown.empty();) {
    std::vector<Candidate> asked = tuner_->next(free_groups);
    goes_on = !asked.empty();
    for (Candidate& candidate : asked) {
      const bool is_baseline = candidate.ds_config == candidate_.ds_config;
      if (is_baseline && candidate.repetition == 0) {
        twin_ = candidate.name;
        if (baseline_) tell_of_baseline();
        continue;
      }
      const std::string name = candidate.name;
      if (is_baseline) candidate.name = concat(candidate_.name, "_again", candidate.repetition);
      asked_[candidate.name] = name;
      shown.push_back(std::move(candidate));
    }
    if (!baseline_) break;  // it may have asked for that alone
  }
  return shown;
}

std::vector<Candidate> BaselineTuner::next(int free_groups) {
  if (!baseline_) {
    waiting_ = next_inside(free_groups);
    return {candidate_};
  }
  auto candidates = waiting_ && !waiting_->empty() ? *waiting_ : next_inside(free_groups);
  waiting_.reset();
  if (!candidates.empty()) return candidates;
  auto again = repetition();
  if (!again) return {};
  return {*std::move(again)};
}

void BaselineTuner::learn(const Record& record) {
  if (record.experiment.repetition > 0) repeated_.push_back(record);
  if (!baseline_ && record.experiment.name == candidate_.name) {
    baseline_ = record;
    if (!twin_.empty()) tell_of_baseline();
    return;
  }
  const auto asked = asked_.find(record.experiment.name);
  if (asked == asked_.end()) return;
  Record own = record;
  own.experiment.name = asked->second;
  tuner_->learn(own);
}

std::optional<int> BaselineTuner::still_to_come() {
  const auto inside = tuner_->still_to_come();
  if (!inside) return std::nullopt;
  if (!baseline_) return *inside + 1 + 2 * kRepetitions;
  const auto best = tuner_->best();
  int due = kRepetitions - std::min(kRepetitions, last_repetition(*baseline_));
  due += kRepetitions - std::min(kRepetitions, best ? last_repetition(*best) : 0);
  return *inside + (measured_of(*baseline_) == nullptr ? 0 : due);
}

std::optional<Seconds> BaselineTuner::foretold(const std::string& name) {
  if (name == candidate_.name) {
    return twin_.empty() ? std::nullopt : tuner_->foretold(twin_);
  }
  const auto asked = asked_.find(name);
  return asked == asked_.end() ? std::nullopt : tuner_->foretold(asked->second);
}

bool BaselineTuner::is_faster_than(const Record& best) const {
  return score(metric_, mean_of_repetitions(best)) <
         score(metric_, mean_of_repetitions(*baseline_));
}

std::optional<Record> BaselineTuner::best() {
  auto best = tuner_->best();
  if (!baseline_ || measured_of(*baseline_) == nullptr) return best;
  // A search that was stopped, or found nothing that runs, still has this.
  if (!best || best->experiment.ds_config == candidate_.ds_config) return baseline_;
  return is_faster_than(*best) ? baseline_ : best;
}

std::vector<PredictedStep> BaselineTuner::predictions() {
  auto predictions = tuner_->predictions();
  for (PredictedStep& step : predictions) {
    if (step.experiment.name == twin_) step.experiment.name = candidate_.name;
  }
  return predictions;
}

std::vector<std::string> BaselineTuner::remarks() {
  auto remarks = tuner_->remarks();
  if (!twin_.empty()) {
    for (std::string& remark : remarks) remark = renamed(remark, twin_, candidate_.name);
  }
  const auto inside = tuner_->best();
  const auto chosen = best();
  if (inside && chosen && inside->experiment.ds_config != chosen->experiment.ds_config) {
    remarks.insert(remarks.begin(),
                   concat("your own configuration, ", candidate_.name,
                          ", is faster than what the search found, ", inside->experiment.name));
  }
  return remarks;
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
