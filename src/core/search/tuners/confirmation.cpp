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
constexpr int kMostRepetitions = 5;
constexpr double kRealChance = 0.05;
constexpr double kAsFast = 0.01;
// Noise of half the spread adds an eighth to the total uncertainty.
constexpr double kNegligible = 0.5;

}  // namespace

Confirmation::Confirmation(std::unique_ptr<Tuner> tuner, Metric metric, ConfirmBy by)
    : tuner_(std::move(tuner)), metric_(metric), by_(by) {}

std::vector<Candidate> Confirmation::next(int free_groups) {
  if (asked_.empty()) {
    auto candidates = tuner_->next(free_groups);
    if (!candidates.empty()) return candidates;
    contenders_ = by_ == ConfirmBy::duels
                      ? choose_contenders(found_, metric_, kWindow, kMostContenders)
                      : choose_finalists(tuner_->stage_bests(), found_);
  }
  auto again = repetition();
  if (!again) return {};
  return {*std::move(again)};
}

std::optional<Candidate> Confirmation::repetition() {
  if (by_ == ConfirmBy::duels && contenders_.size() < 2) return std::nullopt;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (contenders_[i].repetitions == 0) return again(i);
  }
  if (by_ == ConfirmBy::stages) return std::nullopt;
  const auto now = duel();
  if (!now || now->chance < kRealChance) return std::nullopt;
  const bool is_leaders_turn =
      contenders_[now->leader].repetitions <= contenders_[now->rival].repetitions;
  const std::size_t next = is_leaders_turn ? now->leader : now->rival;
  if (contenders_[next].repetitions >= kMostRepetitions) return std::nullopt;
  return again(next);
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
  const double noise = std::hypot(relative_noise(std::get<Measured>(contender.record.outcome)),
                                  relative_noise(std::get<Measured>(repetition.outcome)));
  if (std::abs(longer) <= std::max(kWindow, 3 * noise)) return;
  far_.push_back(concat(repetition.experiment.name, " took ", fixed(std::abs(longer) * 100, 0),
                        longer > 0 ? " % longer" : " % less"));
}

std::optional<std::size_t> Confirmation::leader() const {
  std::optional<std::size_t> leader;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (contenders_[i].speeds.empty()) continue;
    if (!leader || contenders_[i].mean() > contenders_[*leader].mean()) leader = i;
  }
  return leader;
}

std::optional<Confirmation::Duel> Confirmation::duel() const {
  const auto leads = leader();
  const double noise = repetition_noise(contenders_);
  std::optional<Duel> closest;
  for (std::size_t i = 0; leads && i < contenders_.size(); ++i) {
    if (i == *leads || contenders_[i].speeds.empty() || is_settled(i, *leads)) continue;
    const double chance = chance_of_being_faster(contenders_[i], contenders_[*leads], noise);
    if (!closest || chance > closest->chance) closest = Duel{*leads, i, chance};
  }
  return closest;
}

bool Confirmation::is_settled(std::size_t index, std::size_t leader) const {
  const Contender& rival = contenders_[index];
  const Contender& leads = contenders_[leader];
  const double spread = profile_spread(leads.record.experiment.settings, metric_,
                                       std::get<Measured>(leads.record.outcome),
                                       std::get<Measured>(rival.record.outcome));
  return standard_error(rival, leads, repetition_noise(contenders_)) < spread * kNegligible;
}

bool Confirmation::is_tie(std::size_t index, std::size_t leader) const {
  const Contender& contender = contenders_[index];
  if (index == leader) return true;
  if (contender.speeds.empty()) return false;
  return chance_of_being_faster(contender, contenders_[leader], repetition_noise(contenders_)) >=
         kRealChance;
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
  const auto simplicity = [&](std::size_t i) {
    return simplicity_of(contenders_[i].record, std::exp(-contenders_[i].mean()));
  };
  for (std::size_t i = 0; leads && i < contenders_.size(); ++i) {
    if (!is_tie(i, *leads)) continue;
    if (contenders_[i].mean() < contenders_[*leads].mean() + std::log1p(-kAsFast)) continue;
    if (!winner || simplicity(i) < simplicity(*winner)) winner = i;
  }
  return winner;
}

std::optional<Record> Confirmation::best() {
  const auto chosen = winner();
  return chosen ? std::optional(contenders_[*chosen].record) : tuner_->best();
}

std::string Confirmation::ties_of(std::size_t winner) const {
  const Record& chosen = contenders_[winner].record;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (i != winner && is_tie(i, *leader())) {
      names.push_back(contenders_[i].record.experiment.name);
    }
  }
  for (const Record& record : found_) {
    const auto* measured = std::get_if<Measured>(&record.outcome);
    const bool was_repeated = std::ranges::any_of(contenders_, [&](const Contender& contender) {
      return contender.record.experiment.name == record.experiment.name;
    });
    if (measured == nullptr || was_repeated) continue;
    if (is_clearly_better(metric_, std::get<Measured>(chosen.outcome), *measured)) continue;
    names.push_back(record.experiment.name);
  }
  return join(names, ", ");
}

std::vector<std::string> Confirmation::remarks() {
  auto remarks = tuner_->remarks();
  const auto chosen = winner();
  if (!chosen || by_ == ConfirmBy::stages) return remarks;
  const Contender& best = contenders_[*chosen];
  const std::string ties = ties_of(*chosen);
  const auto spread = measured_spread(contenders_);
  remarks.push_back(concat(best.record.experiment.name, " was confirmed by ", best.repetitions,
                           best.repetitions == 1 ? " repetition" : " repetitions", " against ",
                           contenders_.size() - 1, contenders_.size() == 2 ? " other" : " others",
                           spread ? concat("; times of repetitions vary by ",
                                           fixed(*spread * 100, *spread < 0.001 ? 2 : 1), " %")
                                  : "",
                           ties.empty() ? "" : concat("; not told apart from it: ", ties)));
  if (!far_.empty()) {
    remarks.push_back(
        concat(join(far_, ", "), " than at first: something disturbed one of the measurements"));
  }
  return remarks;
}

}  // namespace dstune
