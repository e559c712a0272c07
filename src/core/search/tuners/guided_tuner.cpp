#include "core/search/tuners/guided_tuner.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/search/predict/chances.hpp"
#include "core/search/predict/likeness.hpp"
#include "core/search/predict/predictor.hpp"
#include "core/search/tuners/compare/tie_rule.hpp"
#include "core/search/tuners/tuner_table.hpp"

namespace dstune {
namespace {

/// The fewest measurements with which the search may stop.
constexpr std::size_t kLeastMeasured = 5;
/// A peak above this share of the limit is near it.
constexpr double kNearLimit = 0.9;
/// A candidate whose first steps are longer than the best's by this, logarithmically, or by
/// kErrors standard errors of the best's, is measured no further. Two runs of one configuration
/// differ by 5 % on a machine with other users, and two steps of a run by about as much.
constexpr double kCannotWin = 0.2;
constexpr double kErrors = 4;
}  // namespace

GuidedTuner::GuidedTuner(const TuningConfig& config, int group_size, Pool pool,
                         std::unique_ptr<Forecaster> forecaster)
    : PoolTuner("guided", config, group_size, std::move(pool)),
      forecaster_(std::move(forecaster)),
      belief_(belief_of_pool()),
      simplicity_(simplicity_of_pool()) {}

std::vector<std::size_t> GuidedTuner::simplicity_of_pool() const {
  std::vector<Simplicity> all;
  for (std::size_t i = 0; i < trials().size(); ++i) {
    const PooledCandidate& pooled = trials().at(i);
    const StepConfig& config = pooled.candidate.ds_config.step();
    all.push_back(
        {config.stage, departures_from_defaults(config), 0, pooled.dry.peak_memory.counted()});
  }
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t i, std::size_t other) { return all[i] < all[other]; });
  std::vector<std::size_t> places(all.size());
  for (std::size_t place = 0; place < order.size(); ++place) places[order[place]] = place;
  return places;
}

Belief GuidedTuner::belief_of_pool() const {
  std::vector<Configuration> configurations;
  const auto limit = static_cast<double>(config().settings.memory_limit);
  for (std::size_t i = 0; i < trials().size(); ++i) {
    const PooledCandidate& pooled = trials().at(i);
    const auto peak = static_cast<double>(pooled.dry.peak_memory.counted());
    configurations.push_back({&pooled.candidate.ds_config.step(),
                              experiment(i).settings.sequence_length,
                              limit > 0 && peak > kNearLimit * limit});
  }
  return Belief(Likeness(configurations));
}

void GuidedTuner::take_in(const Record& record) {
  outlook_.reset();
  const auto* measured = std::get_if<Measured>(&record.outcome);
  if (measured == nullptr || !(typical_step_time(*measured) > 0)) return;
  if (was_given_up(record.experiment, *measured)) ++given_up_;
  slowed_ = record.slowed;
  forecaster_->learn(record.experiment, *measured);
  belief_.tell(trials().index_of(record.experiment.name), std::log(typical_step_time(*measured)),
               error_of(record.experiment, *measured));
}

std::vector<PhysicsGuess> GuidedTuner::physics() {
  if (!has_asked_) {
    std::vector<Experiment> experiments;
    for (std::size_t i = 0; i < trials().size(); ++i) experiments.push_back(experiment(i));
    forecaster_->expect(std::move(experiments));
    has_asked_ = true;
  }
  return forecaster_->physics();
}

const Outlook& GuidedTuner::outlook() {
  if (outlook_) return *outlook_;
  std::vector<Prospect> prospects;
  for (std::size_t i = 0; i < trials().size(); ++i) {
    prospects.push_back({.log_work = log_speed(metric(), samples(i), 1),
                         .is_measured = trials().measured(i) != nullptr,
                         .is_tried = trials().is_tried(i),
                         .warnings = trials().warnings(i),
                         .simplicity = simplicity_[i]});
  }
  for (const std::size_t i : trials().open()) prospects[i].is_open = true;
  belief_.set_physics(physics());
  outlook_ = outlook_of(belief_, prospects);
  return *outlook_;
}

Seconds GuidedTuner::give_up_above(std::size_t index) {
  if (!outlook().best) return 0;
  const std::size_t best = *outlook().best;
  const auto log_work = [&](std::size_t i) { return log_speed(metric(), samples(i), 1); };
  // What is measured now may take longer than the best did for reasons that are not its own.
  const double slower = std::max(1.0, slowed_ / trials().record(best).slowed);
  const double margin = std::max(kCannotWin, kErrors * relative_error(*trials().measured(best)));
  return std::exp(belief_.mean(best) + log_work(index) - log_work(best) + margin +
                  std::log(slower));
}

bool GuidedTuner::has_learnt_enough() const { return trials().measurements() >= kLeastMeasured; }

std::vector<std::size_t> GuidedTuner::choose(std::size_t count) {
  if (has_learnt_enough() && outlook().chance_of_any < config().stop_at_chance) return {};
  std::vector<std::size_t> chosen = outlook().next;
  chosen.resize(std::min(chosen.size(), count));
  return chosen;
}

std::optional<int> GuidedTuner::still_to_come() {
  const int most = PoolTuner::still_to_come().value_or(0);
  if (has_learnt_enough() && outlook().chance_of_any < config().stop_at_chance) return 0;
  const std::size_t least = kLeastMeasured - std::min(kLeastMeasured, trials().measurements());
  return std::min(most, static_cast<int>(std::max(least, outlook().next.size())));
}

std::optional<Seconds> GuidedTuner::foretold(const std::string& name) {
  outlook();  // the belief knows the physics from here on
  return std::exp(belief_.mean(trials().index_of(name)));
}

std::optional<Record> GuidedTuner::best() {
  const auto best = outlook().best;
  return best ? std::optional(trials().record(*best)) : std::nullopt;
}

std::vector<std::string> GuidedTuner::contenders() {
  std::vector<std::string> names;
  for (const std::size_t i : outlook().contenders) names.push_back(trials().at(i).candidate.name);
  return names;
}

std::vector<PredictedStep> GuidedTuner::predictions() {
  constexpr double kInside95 = 1.959963984540054;
  std::vector<PredictedStep> steps;
  if (!outlook().best) return steps;
  for (std::size_t i = 0; i < trials().size(); ++i) {
    const double mean = belief_.mean(i);
    const double half = kInside95 * std::sqrt(std::fmax(belief_.variance(i), 0));
    const Measured* measured = trials().measured(i);
    steps.push_back({.experiment = experiment(i),
                     .step_time = std::exp(mean),
                     .low = std::exp(mean - half),
                     .high = std::exp(mean + half),
                     .log_speed = log_speed(metric(), samples(i), 1) - mean,
                     .measured = measured == nullptr
                                     ? std::nullopt
                                     : std::optional(typical_step_time(*measured))});
  }
  return steps;
}

std::vector<std::string> GuidedTuner::remarks() {
  auto remarks = PoolTuner::remarks();
  if (given_up_ > 0) {
    remarks.push_back(concat(given_up_, given_up_ == 1 ? " configuration" : " configurations",
                             " took so much longer than the best that only the first steps were "
                             "measured"));
  }
  const auto untried = trials().untried();
  if (!outlook().best || untried.empty()) return remarks;
  const std::string better = concat("better by more than ", fixed(kBetterBy * 100, 0), " %");
  if (why_over().empty() && has_learnt_enough() &&
      outlook().chance_of_any < config().stop_at_chance) {
    remarks.front() += concat(": the chance that another is ", better, " is below ",
                              format_chance(config().stop_at_chance), " (stop_at_chance)");
  }
  remarks.push_back(
      concat("of the ", untried.size(), " configurations that were not tried, ",
             trials().at(*outlook().likeliest).candidate.name, " is the likeliest to be ", better,
             ", with a chance of ", format_chance(outlook().chance_of_likeliest),
             "; the chance that any of them is: ", format_upper_chance(outlook().chance_of_any)));
  return remarks;
}

std::unique_ptr<Tuner> make_guided_tuner(const TunerParts& parts, Pool pool) {
  return std::make_unique<GuidedTuner>(parts.config, parts.group_size, std::move(pool),
                                       parts.make_forecaster());
}

}  // namespace dstune
