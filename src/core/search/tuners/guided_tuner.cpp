#include "core/search/tuners/guided_tuner.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/search/tuners/compare/score.hpp"
#include "core/search/tuners/tuner_table.hpp"

namespace dstune {
namespace {

/// The fewest measurements with which the predictor may decide to stop.
constexpr std::size_t kLeastMeasured = 5;
/// Chances above this are as good as certain, so that among these the faster candidate is the
/// better choice.
constexpr double kCertain = 0.95;

}  // namespace

GuidedTuner::GuidedTuner(const TuningConfig& config, int group_size, Pool pool,
                         std::unique_ptr<Forecaster> forecaster)
    : PoolTuner("guided", config, group_size, std::move(pool)),
      forecaster_(std::move(forecaster)),
      guesses_(trials().size()) {}

void GuidedTuner::take_in(const Record& record) {
  const auto* measured = std::get_if<Measured>(&record.outcome);
  if (measured == nullptr) return;
  forecaster_->learn(record.experiment, *measured);
  guesses_.assign(trials().size(), std::nullopt);
}

Guess GuidedTuner::guess(std::size_t index) {
  auto& known = guesses_[index];
  if (!known) {
    known = guess_of(metric(), samples(index), forecaster_->predict(experiment(index)));
  }
  return *known;
}

double GuidedTuner::chance(std::size_t index, double threshold) {
  // Each candidate that needs no more memory and did not fit halves the chance that this one fits.
  return std::ldexp(guess(index).chance_above(threshold), -trials().warnings(index));
}

std::optional<double> GuidedTuner::threshold() const {
  const auto best = trials().best();
  if (!best) return std::nullopt;
  const Measured& measured = *trials().measured(*best);
  const double speed = log_speed(metric(), samples(*best), typical_step_time(measured));
  return speed + std::log1p(noise_threshold(measured, measured));
}

bool GuidedTuner::has_learnt_enough() const { return trials().measurements() >= kLeastMeasured; }

std::size_t GuidedTuner::most_promising(const std::vector<std::size_t>& open,
                                        std::optional<double> to_beat) {
  const auto rank = [&](std::size_t i) {
    const double likely = to_beat ? chance(i, *to_beat) : 1;
    return std::tuple(std::min(likely, kCertain), guess(i).mean);
  };
  const auto found = std::ranges::max_element(open, {}, rank);
  return static_cast<std::size_t>(found - open.begin());
}

void GuidedTuner::expect_guesses(const std::vector<std::size_t>& indices) {
  std::vector<Experiment> unknown;
  for (const std::size_t index : indices) {
    if (!guesses_[index]) unknown.push_back(experiment(index));
  }
  forecaster_->expect(unknown);
}

std::vector<std::size_t> GuidedTuner::choose(std::size_t count) {
  auto open = trials().open();
  expect_guesses(open);
  const auto now = threshold();
  auto to_beat = now;
  std::vector<std::size_t> chosen;
  while (chosen.size() < count && !open.empty()) {
    const std::size_t at = most_promising(open, to_beat);
    const std::size_t index = open[at];
    const bool has_chance = !now || chance(index, *now) >= config().stop_at_chance;
    if (!has_chance && has_learnt_enough()) break;
    chosen.push_back(index);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    const double expected = guess(index).mean + std::log1p(noise_threshold({}, {}));
    to_beat = std::max(to_beat.value_or(expected), expected);
  }
  return chosen;
}

std::vector<std::string> GuidedTuner::remarks() {
  auto remarks = PoolTuner::remarks();
  const auto to_beat = threshold();
  const auto untried = trials().untried();
  if (!to_beat || untried.empty()) return remarks;
  std::vector<double> chances;
  chances.reserve(untried.size());
  for (const std::size_t i : untried) chances.push_back(chance(i, *to_beat));
  const auto likeliest = std::ranges::max_element(chances);
  const std::size_t index = untried[static_cast<std::size_t>(likeliest - chances.begin())];
  if (why_over().empty() && has_learnt_enough() && *likeliest < config().stop_at_chance) {
    remarks.front() += concat(": no other has a chance of ", format_chance(config().stop_at_chance),
                              " (stop_at_chance)");
  }
  remarks.push_back(concat("of the ", untried.size(),
                           " configurations that were not tried the likeliest to be better beyond "
                           "noise is ",
                           trials().at(index).candidate.name, " with a chance of ",
                           format_chance(*likeliest), "; that any of them is has a chance of ",
                           format_upper_chance(joint_chance(chances))));
  return remarks;
}

std::unique_ptr<Tuner> make_guided_tuner(const TunerParts& parts, Pool pool) {
  return std::make_unique<GuidedTuner>(parts.config, parts.group_size, std::move(pool),
                                       parts.make_forecaster());
}

}  // namespace dstune
