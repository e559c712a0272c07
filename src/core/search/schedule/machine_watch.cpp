#include "core/search/schedule/machine_watch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr double kShare = 0.03;             // of the time, for references that come by time
constexpr double kShareOfSuspicion = 0.05;  // for all, where the ranks say that something changed
constexpr double kNewPace = 0.1;
/// Seconds of work below which a share of a core says nothing (a limit's period is 0.1 s).
constexpr Seconds kLeastWork = 0.1;

/// The numbers of a record whose times come from a clock.
const Measured* watched(const Record& record) {
  const Measured* measured = measured_of(record);
  const bool has_clock = measured != nullptr && typical_step_time(*measured) > 0 &&
                         measured->core_use.size() == record.ranks.size() &&
                         !record.ranks.empty() && !record.experiment.settings.share_gpu;
  return has_clock ? measured : nullptr;
}

/// The seconds in which `record` ran beside others of `batch`, at most its own time.
Seconds company_of(const Record& record, const std::vector<Record>& batch) {
  Seconds most = 0;
  for (const Record& other : batch) {
    if (other.experiment.name == record.experiment.name) continue;
    most = std::max(
        most, std::min(record.finished, other.finished) - std::max(record.started, other.started));
  }
  return most;
}

bool is_beside(const Record& record, const std::vector<Record>& batch) {
  return company_of(record, batch) > (record.finished - record.started) / 2;
}

double speed_of(const CoreUse& use) {
  return use.probe_per_s * (use.wanted >= kLeastWork ? core_share(use) : 1);
}

std::string percent(double part) { return concat(fixed(part * 100, 0), " %"); }

std::string listed(std::vector<std::string> names) {
  constexpr std::size_t kShown = 3;
  const bool are_more = names.size() > kShown;
  if (are_more) names.resize(kShown);
  return concat(join(names, ", "), are_more ? ", ..." : "");
}

}  // namespace

double most_by_noise(double noise) {
  constexpr double kBetweenRuns = 0.05;
  constexpr double kErrors = 3;
  return std::max(kBetweenRuns, kErrors * noise);
}

Experiment MachineWatch::reference() {
  Experiment experiment = (beside_ ? beside_ : base_)->experiment;
  ++references_;
  experiment.repetition = references_;
  experiment.is_reference = true;
  experiment.give_up_above = 0;
  experiment.name += concat("_reference", references_);
  return experiment;
}

std::optional<Experiment> MachineWatch::due(const std::vector<Record>& batch) {
  if (batch.empty()) return std::nullopt;
  if (doubted_) return reference();
  if (!base_) {
    if (beside_) return std::nullopt;  // it could not be measured alone
    const auto first = std::ranges::find_if(
        batch, [](const Record& record) { return watched(record) != nullptr; });
    if (first == batch.end()) return std::nullopt;
    if (is_beside(*first, batch)) {
      beside_ = *first;
      return reference();
    }
    base_ = *first;
    take_pace(*watched(*first), first->ranks);
    cost_ = first->finished - first->started;
    last_ = first->finished;
    return std::nullopt;
  }
  Seconds now = last_;
  for (const Record& record : batch) now = std::max(now, record.finished);
  if (now == last_ || (time_budget_ && now + cost_ > *time_budget_)) return std::nullopt;
  const bool has_time = cost_ <= kShare * (now - last_);
  const bool is_suspicious = spent_ + cost_ <= kShareOfSuspicion * now && has_new_pace(batch);
  return has_time || is_suspicious ? std::optional(reference()) : std::nullopt;
}

bool MachineWatch::has_new_pace(const std::vector<Record>& batch) const {
  std::vector<double> changes;
  for (const Record& record : batch) {
    const Measured* measured = watched(record);
    if (measured == nullptr) continue;
    for (std::size_t i = 0; i < record.ranks.size(); ++i) {
      const CoreUse& use = measured->core_use[i];
      const auto known = pace_.find(record.ranks[i]);
      if (known == pace_.end() || known->second.probe != use.probe) continue;
      const double before = speed_of(known->second);
      if (before > 0 && speed_of(use) > 0) changes.push_back(std::log(speed_of(use) / before));
    }
  }
  return !changes.empty() && std::abs(summarize(changes).median) > std::log1p(kNewPace);
}

void MachineWatch::take_pace(const Measured& measured, const std::vector<int>& ranks) {
  pace_.clear();
  for (std::size_t i = 0; i < ranks.size(); ++i) pace_[ranks[i]] = measured.core_use[i];
}

bool MachineWatch::is_moved(double factor, const Measured& measured) const {
  const double noise = std::hypot(relative_error(measured), relative_error(*measured_of(*base_)));
  return std::abs(std::log(factor / factor_)) > most_by_noise(noise);
}

void MachineWatch::learn(const Record& record) {
  spent_ += record.finished - record.started;
  const Seconds before = std::exchange(last_, record.finished);
  const Measured* measured = watched(record);
  if (measured == nullptr) {
    doubted_.reset();
    return;
  }
  cost_ = record.finished - record.started;
  take_pace(*measured, record.ranks);
  if (!base_) {
    base_ = record;
    return;
  }
  const Seconds step_time = typical_step_time(*measured);
  double factor = step_time / typical_step_time(*measured_of(*base_));
  if (!is_moved(factor, *measured)) {
    largest_ = std::max(largest_, std::abs(factor / factor_ - 1));
    doubted_.reset();
    since_last_.clear();
    return;
  }
  if (!doubted_) {
    doubted_ = factor;
    last_ = before;  // the change lies between the reference before and this one
    return;
  }
  const auto change = [&](double each) { return std::abs(std::log(each / factor_)); };
  if (change(*doubted_) < change(factor)) factor = *doubted_;
  doubted_.reset();
  changes_.push_back({before, record.started, factor, step_time, 0, std::move(since_last_)});
  since_last_.clear();
  factor_ = factor;
  log_warning(concat("the machine has changed: a step of ", base_->experiment.name, " takes ",
                     format_seconds(step_time), ", and took ",
                     format_seconds(typical_step_time(*measured_of(*base_)))));
}

void MachineWatch::mark(std::vector<Record>& batch) {
  const double company = base_ && beside_ ? typical_step_time(*measured_of(*beside_)) /
                                                typical_step_time(*measured_of(*base_))
                                          : 1;
  std::vector<bool> beside;
  beside.reserve(batch.size());
  for (const Record& record : batch) beside.push_back(is_beside(record, batch));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (watched(batch[i]) == nullptr) continue;
    batch[i].slowed = factor_ * (beside[i] ? company : 1);
    if (beside_ && !beside[i] && batch[i].experiment.repetition == 0) ++alone_;
    if (!changes_.empty()) ++changes_.back().marked;
    since_last_.push_back(batch[i].experiment.name);
  }
}

std::vector<std::string> MachineWatch::remarks() const {
  std::vector<std::string> remarks;
  if (!base_) return remarks;
  const Seconds first = typical_step_time(*measured_of(*base_));
  const std::string& name = (beside_ ? beside_ : base_)->experiment.name;
  if (beside_) {
    const Seconds together = typical_step_time(*measured_of(*beside_));
    remarks.push_back(
        concat("experiments ran side by side: ", name, " took ", fixed(together / first, 2),
               " times as long beside others as alone (", format_seconds(together), " against ",
               format_seconds(first), " per step)",
               alone_ == 0 ? ""
                           : concat("; ", alone_, alone_ == 1 ? " experiment" : " experiments",
                                    " of the search ran alone, which is corrected for when the "
                                    "contenders are chosen")));
  }
  for (const Change& change : changes_) {
    const double part = change.factor - 1;
    remarks.push_back(
        concat("the machine changed between ", fixed(change.since, 0), " s and ",
               fixed(change.at, 0), " s: since then ", name, " takes ", percent(std::abs(part)),
               part > 0 ? " longer" : " less", " than at first (", format_seconds(change.step_time),
               " against ", format_seconds(first), " per step, twice); ", change.marked,
               " experiments measured since are compared as if it had not",
               change.between.empty()
                   ? ""
                   : concat(", and ", change.between.size(),
                            " before it may have seen either state: ", listed(change.between))));
  }
  if (changes_.empty() && references_ > (beside_ ? 1 : 0)) {
    const int repeated = references_ - (beside_ ? 1 : 0);
    remarks.push_back(concat("the machine stayed as it was: ", name, ", repeated ", repeated,
                             repeated == 1 ? " time" : " times", " between others, took at most ",
                             percent(largest_), " longer or less"));
  }
  return remarks;
}

}  // namespace dstune
