#include "core/search/tuners/confirmation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/predict/chances.hpp"
#include "core/search/tuners/compare/profile_spread.hpp"
#include "core/search/tuners/compare/score.hpp"
#include "core/search/tuners/compare/tie_rule.hpp"

namespace dstune {
namespace {

constexpr std::size_t kMostContenders = 4;
constexpr double kWindow = 0.05;  // the most that is_clearly_better() takes for noise
// The chance that any of those that were measured once is called slower than it is.
constexpr double kFalseAlarm = 0.025;
// An expected loss that is worth another round.
constexpr double kWorthRepeating = 0.002;
// Noise of half the spread adds an eighth to the total uncertainty.
constexpr double kNegligible = 0.5;

std::string not_told_apart(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 8;
  if (names.empty()) return "";
  const std::size_t named = std::min(names.size(), kMostNamed);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(named);
  return concat("; not distinguishable from it: ", join({names.begin(), end}, ", "),
                named == names.size() ? "" : concat(" and ", names.size() - named, " more"));
}

}  // namespace

Confirmation::Confirmation(std::unique_ptr<Tuner> tuner, Metric metric, ConfirmBy by)
    : tuner_(std::move(tuner)), metric_(metric), by_(by) {}

std::vector<Candidate> Confirmation::next(int free_groups) {
  if (asked_.empty()) {
    auto candidates = tuner_->next(free_groups);
    if (!candidates.empty()) return candidates;
    contenders_ = chosen_contenders();
    for (Contender& contender : contenders_) {
      if (overlaps_another(contender.record, found_)) continue;
      contender.first = log_speed_of(contender.record);
    }
  }
  auto again = repetition();
  if (!again) return {};
  return {*std::move(again)};
}

std::vector<Contender> Confirmation::chosen_contenders() {
  if (by_ == ConfirmBy::stages) return choose_finalists(tuner_->stage_bests(), found_);
  std::vector<Contender> named;
  for (const std::string& name : tuner_->contenders()) {
    const auto record = std::ranges::find_if(
        found_, [&](const Record& each) { return each.experiment.name == name; });
    named.push_back({*record});
  }
  return named.empty() ? choose_contenders(found_, metric_, kWindow, kMostContenders) : named;
}

int Confirmation::until_next_look() const {
  int most = 0;
  int missing = 0;
  const auto left = left_in_race();
  for (const std::size_t i : left) most = std::max(most, contenders_[i].repetitions);
  for (const std::size_t i : left) missing += most - contenders_[i].repetitions;
  int target = std::max(most, 1);
  if (by_ == ConfirmBy::duels) {
    if (missing == 0 && most > 0) ++target;  // this look is over
    while (!is_look(target) && target < kMostRepetitions) ++target;
  }
  return missing + (target - most) * static_cast<int>(left.size());
}

std::optional<int> Confirmation::still_to_come() {
  if (!asked_.empty()) return until_next_look();
  const auto inside = tuner_->still_to_come();
  if (!inside) return std::nullopt;
  constexpr int kFirstLook = 2;
  const auto named = static_cast<int>(tuner_->contenders().size());
  return *inside + (by_ == ConfirmBy::duels ? kFirstLook * std::max(2, named) : 0);
}

std::optional<Seconds> Confirmation::foretold(const std::string& name) {
  const auto asked = asked_.find(name);
  if (asked == asked_.end()) return tuner_->foretold(name);
  const auto* const measured = measured_of(contenders_[asked->second].record);
  return measured == nullptr ? std::nullopt : std::optional(typical_step_time(*measured));
}

std::optional<Candidate> Confirmation::repetition() {
  if (by_ == ConfirmBy::duels && contenders_.size() < 2) return std::nullopt;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (contenders_[i].repetitions == 0) return again(i);
  }
  return by_ == ConfirmBy::duels ? repetition_of_duels() : std::nullopt;
}

std::optional<Candidate> Confirmation::repetition_of_duels() {
  const auto repetitions = [&](std::size_t i) { return contenders_[i].repetitions; };
  auto left = left_in_race();
  if (left.size() < 2) return std::nullopt;
  const int rounds = repetitions(*std::ranges::min_element(left, {}, repetitions));
  if (is_look(rounds) &&
      std::ranges::all_of(left, [&](auto i) { return repetitions(i) == rounds; })) {
    mark_beaten();
    left = left_in_race();
    if (rounds >= kMostRepetitions || !goes_on(left)) return std::nullopt;
  }
  // There and back: a drift that is steady is then the same for all.
  if (rounds % 2 == 1) std::ranges::reverse(left);
  return again(*std::ranges::find(left, rounds, repetitions));
}

std::vector<std::size_t> Confirmation::left_in_race() const {
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (!contenders_[i].is_beaten && !contenders_[i].has_failed()) left.push_back(i);
  }
  return left;
}

void Confirmation::mark_beaten() {
  const auto leads = leader();
  const Spread noise = run_to_run(contenders_);
  for (Contender& rival : contenders_) {
    if (rival.speeds.empty() || rival.is_beaten) continue;
    rival.is_beaten =
        is_told_apart(contenders_[*leads], rival, noise, chance_of_a_look(contenders_.size()));
  }
}

bool Confirmation::goes_on(const std::vector<std::size_t>& left) const {
  const auto leads = leader();
  const Spread noise = run_to_run(contenders_);
  return std::ranges::any_of(left, [&](std::size_t i) {
    const Contender& first = contenders_[*leads];
    return i != *leads && !is_settled(i, *leads, noise.sd) &&
           (expected_loss(first, contenders_[i], noise.sd) > kWorthRepeating ||
            may_be_told_apart(first, contenders_[i], noise, chance_of_a_look(contenders_.size()),
                              static_cast<int>(left.size())));
  });
}

Candidate Confirmation::again(std::size_t index) {
  const Contender& contender = contenders_[index];
  const Experiment& experiment = contender.record.experiment;
  const int number = contender.repetitions + 1;
  const std::string suffix = by_ == ConfirmBy::duels ? concat("_again", number) : "_alone";
  Candidate candidate{experiment.name + suffix, experiment.ds_config, number};
  asked_.insert_or_assign(candidate.name, index);
  return candidate;
}

void Confirmation::learn(const Record& record) {
  const auto asked = asked_.find(record.experiment.name);
  if (asked == asked_.end()) {
    found_.push_back(record);
    tuner_->learn(record);
    return;
  }
  Contender& contender = contenders_[asked->second];
  contender.repetitions = std::max(contender.repetitions, record.experiment.repetition);
  const auto* measured = std::get_if<Measured>(&record.outcome);
  if (measured == nullptr) return;
  contender.last = *measured;
  contender.speeds.push_back(log_speed_of(record));
  compare_with_first(contender, record);
}

double Confirmation::log_speed_of(const Record& record) const {
  const Experiment& experiment = record.experiment;
  const auto samples = amount_of(
      metric_, make_step_config(experiment).train_batch(experiment.ranks), experiment.settings);
  return log_speed(metric_, samples, typical_step_time(std::get<Measured>(record.outcome)));
}

// Notes a repetition that took much longer or shorter than the measurement by which the search
// chose.
void Confirmation::compare_with_first(const Contender& contender, const Record& repetition) {
  const double longer = std::expm1(log_speed_of(contender.record) - contender.speeds.back());
  const double noise = std::hypot(relative_error(std::get<Measured>(contender.record.outcome)),
                                  relative_error(std::get<Measured>(repetition.outcome)));
  if (std::abs(longer) <= std::max(kWindow, 3 * noise)) return;
  far_.push_back(concat(repetition.experiment.name, " took ", fixed(std::abs(longer) * 100, 0),
                        longer > 0 ? " % longer" : " % less"));
}

std::optional<std::size_t> Confirmation::leader() const {
  std::optional<std::size_t> leader;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (contenders_[i].speeds.empty() || contenders_[i].is_beaten) continue;
    if (!leader || contenders_[i].mean() > contenders_[*leader].mean()) leader = i;
  }
  return leader;
}

bool Confirmation::is_settled(std::size_t index, std::size_t leader, double noise) const {
  const Contender& rival = contenders_[index];
  const Contender& leads = contenders_[leader];
  const double spread = profile_spread(leads.record.experiment.settings, metric_,
                                       std::get<Measured>(leads.record.outcome),
                                       std::get<Measured>(rival.record.outcome));
  return standard_error(rival, leads, noise) < spread * kNegligible;
}

bool Confirmation::is_tie(std::size_t index) const {
  return !contenders_[index].speeds.empty() && !contenders_[index].is_beaten;
}

std::optional<std::size_t> Confirmation::winner() const {
  return by_ == ConfirmBy::duels ? winner_of_duels() : winner_of_stages();
}

std::optional<std::size_t> Confirmation::winner_of_stages() const {
  std::optional<std::size_t> winner;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    const auto& repeated = contenders_[i].last;
    if (!repeated) continue;
    if (!winner || is_clearly_better(metric_, *repeated, *contenders_[*winner].last)) winner = i;
  }
  return winner;
}

std::optional<std::size_t> Confirmation::winner_of_duels() const {
  const auto leads = leader();
  std::optional<std::size_t> winner;
  // Equal times whose mean is of another number of repetitions differ by rounding alone.
  constexpr double kPerUnit = 1e9;
  const auto simplicity = [&](std::size_t i) {
    return simplicity_of(contenders_[i].record, -std::round(contenders_[i].mean() * kPerUnit));
  };
  for (std::size_t i = 0; leads && i < contenders_.size(); ++i) {
    if (!is_tie(i)) continue;
    if (contenders_[i].mean() < contenders_[*leads].mean() + std::log1p(-kSimplerFor)) continue;
    if (!winner || simplicity(i) < simplicity(*winner)) winner = i;
  }
  return winner;
}

std::optional<Record> Confirmation::best() {
  const auto chosen = winner();
  return chosen ? std::optional(contenders_[*chosen].record) : tuner_->best();
}

bool Confirmation::may_be_as_fast(const Record& record, const Contender& winner,
                                  const Spread& noise, double chance) const {
  if (noise.freedom < 1) return true;
  // The speed of the winner when it was chosen is flattered, the later one may have met a slower
  // machine, so only what is slower than both counts.
  const double slower = std::min(log_speed_of(winner.record), winner.mean());
  const double error = noise.sd * std::sqrt(1 + 1 / static_cast<double>(winner.speeds.size()));
  return slower - log_speed_of(record) <= student_quantile(chance, noise.freedom) * error;
}

std::vector<std::string> Confirmation::ties() const {
  const auto chosen = winner();
  if (!chosen) return {};
  const std::size_t winner = *chosen;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (i != winner && is_tie(i)) names.push_back(contenders_[i].record.experiment.name);
  }
  std::vector<const Record*> once;
  for (const Record& record : found_) {
    const bool was_repeated = std::ranges::any_of(contenders_, [&](const Contender& contender) {
      return contender.record.experiment.name == record.experiment.name;
    });
    if (measured_of(record) != nullptr && !was_repeated) once.push_back(&record);
  }
  const Spread noise = run_to_run(contenders_);
  const double chance = kFalseAlarm / std::max<double>(1, static_cast<double>(once.size()));
  for (const Record* record : once) {
    if (!may_be_as_fast(*record, contenders_[winner], noise, chance)) continue;
    names.push_back(record->experiment.name);
  }
  return names;
}

std::vector<std::string> Confirmation::remarks() {
  auto remarks = tuner_->remarks();
  const auto chosen = winner();
  if (!chosen || by_ == ConfirmBy::stages) return remarks;
  const Contender& best = contenders_[*chosen];
  const auto spread = measured_spread(contenders_);
  remarks.push_back(concat(
      best.record.experiment.name, " was confirmed by ", best.repetitions,
      best.repetitions == 1 ? " repetition" : " repetitions", " against ", contenders_.size() - 1,
      contenders_.size() == 2 ? " other" : " others",
      spread ? concat("; repetitions of one configuration vary by ",
                      fixed(*spread * 100, *spread < 0.001 ? 2 : 1), " % (standard deviation)")
             : "",
      not_told_apart(ties())));
  if (!far_.empty()) {
    remarks.push_back(
        concat(join(far_, ", "), " than at first: something disturbed one of the measurements"));
  }
  return remarks;
}

}  // namespace dstune
