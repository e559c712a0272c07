#include "core/search/predict/predictor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/base/parallel.hpp"
#include "core/base/text.hpp"
#include "core/search/predict/dry_step.hpp"

namespace dstune {
namespace {

std::string key_of(Experiment experiment) {
  experiment.repetition = 0;
  experiment.is_reference = false;
  return experiment.key();
}

}  // namespace

bool was_given_up(const Experiment& experiment, const Measured& measured) {
  return experiment.give_up_above > 0 && measured.steps < experiment.settings.measure_steps;
}

double error_of(const Experiment& experiment, const Measured& measured) {
  if (!was_given_up(experiment, measured)) return relative_error(measured);
  constexpr double kLeastNoisePercent = 5;  // two steps may be alike by chance
  Measured noisy = measured;
  noisy.step_time.noise_percent = std::max(noisy.step_time.noise_percent, kLeastNoisePercent);
  return relative_error(noisy);
}

PredictionInterval interval_of(const Prediction& prediction) {
  const double factor = std::exp(kInside90 * prediction.relative_sd);
  return {prediction.step_time / factor, prediction.step_time * factor};
}

StepTimePredictor::StepTimePredictor(RunRates rates, std::function<void()> between,
                                     const PartFactors& start)
    : rates_(std::move(rates)), between_(std::move(between)), factors_(start) {}

void StepTimePredictor::walk_ahead(const std::vector<Experiment>& experiments) {
  const auto caller = std::this_thread::get_id();
  std::vector<std::string> keys(experiments.size());
  for_each_in_parallel(keys.size(), [&](std::size_t i) { keys[i] = key_of(experiments[i]); });
  std::vector<std::optional<StepTime>*> times;
  std::vector<const Experiment*> unknown;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto [own, is_new] = times_.try_emplace(std::move(keys[i]));
    if (!is_new) continue;
    times.push_back(&own->second);
    unknown.push_back(&experiments[i]);
  }
  for_each_in_parallel(times.size(), [&](std::size_t i) {
    if (between_ && std::this_thread::get_id() == caller) between_();
    *times[i] = dry_step_time(*unknown[i], rates_, factors_);
  });
}

const StepTime* StepTimePredictor::time_of(const Experiment& experiment, const std::string& key) {
  auto known = times_.find(key);
  if (known == times_.end()) {
    known = times_.emplace(key, dry_step_time(experiment, rates_, factors_)).first;
  }
  return known->second ? &*known->second : nullptr;
}

const Correction& StepTimePredictor::correction() const {
  constexpr std::size_t kLag = 64;
  if (!correction_) {
    correction_.emplace(observations_, rates_.spread());
    renew_at_ = observations_.size() + observations_.size() / kLag + 1;
    rows_visited_ += correction_->rows_visited();
  }
  return *correction_;
}

const Correction& StepTimePredictor::newest_correction() const {
  if (correction_ && correction_->left_out().size() != observations_.size()) correction_.reset();
  return correction();
}

const StepTime& StepTimePredictor::modelled_time_of(const Experiment& experiment) {
  const StepTime* time = time_of(experiment, key_of(experiment));
  if (time == nullptr) {
    throw std::invalid_argument(concat(experiment.name, ": its step is not modelled"));
  }
  return *time;
}

Prediction StepTimePredictor::predict(const Experiment& experiment) {
  const Estimate estimate = correction().estimate(modelled_time_of(experiment));
  return {estimate.time, estimate.relative_sd};
}

void StepTimePredictor::expect(std::vector<Experiment> experiments) {
  expected_ = std::move(experiments);
  expected_times_.clear();
}

std::vector<PhysicsGuess> StepTimePredictor::physics() {
  if (expected_times_.empty()) {
    walk_ahead(expected_);
    for (const Experiment& experiment : expected_) {
      expected_times_.push_back(modelled_time_of(experiment));
    }
  }
  std::vector<PhysicsGuess> guesses;
  guesses.reserve(expected_times_.size());
  for (const StepTime& time : expected_times_) guesses.push_back(correction().physics(time));
  return guesses;
}

void StepTimePredictor::learn(const Experiment& experiment, const Measured& measured) {
  if (!(measured.step_time.median > 0)) return;
  const std::string key = key_of(experiment);
  const StepTime* time = time_of(experiment, key);
  if (time == nullptr) return;
  const auto group = groups_.emplace(key, static_cast<int>(groups_.size())).first->second;
  observations_.push_back({.dry = *time,
                           .measured = typical_step_time(measured),
                           .relative_noise = error_of(experiment, measured),
                           .group = group});
  experiments_.push_back(experiment);
  const bool looks = rates_.overlaps() && observations_.size() >= look_at_;
  if (looks || observations_.size() >= renew_at_) correction_.reset();
  if (!looks) return;
  look_at_ *= 2;
  if (has_moved()) walk_again();
}

// Whether parts have become much slower relative to each other; a common factor leaves the critical
// path as it is.
bool StepTimePredictor::has_moved() const {
  constexpr double kMuch = 1.1;
  constexpr double kLittleTime = 0.02;
  StepTime sum;
  for (const Observation& seen : observations_) {
    for (std::size_t part = 0; part < kStepParts; ++part) sum.parts[part] += seen.dry.parts[part];
  }
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t part = 0; part < kStepParts; ++part) {
    if (sum.parts[part] < kLittleTime * sum.total()) continue;
    least = std::min(least, correction().coefficients()[part]);
    most = std::max(most, correction().coefficients()[part]);
  }
  return most > kMuch * least;
}

void StepTimePredictor::walk_again() {
  // A part whose fitted factor is 0 may still take time on another path.
  constexpr double kLeast = 1e-3;
  for (std::size_t part = 0; part < kStepParts; ++part) {
    if (part == index_of(StepPart::constant)) continue;
    factors_[part] *= std::max(correction().coefficients()[part], kLeast);
  }
  times_.clear();
  expected_times_.clear();
  for (std::size_t i = 0; i < observations_.size(); ++i) {
    observations_[i].dry = *time_of(experiments_[i], key_of(experiments_[i]));
  }
  correction_.reset();
}

PartFactors StepTimePredictor::factors() const {
  PartFactors factors = factors_;
  for (std::size_t part = 0; part < kStepParts; ++part) {
    if (part != index_of(StepPart::constant)) {
      factors[part] *= newest_correction().coefficients()[part];
    }
  }
  return factors;
}

PredictorQuality StepTimePredictor::quality() const { return newest_correction().quality(); }

std::optional<Prediction> StepTimePredictor::without_own(const Experiment& experiment) const {
  const auto group = groups_.find(key_of(experiment));
  if (group == groups_.end() || groups_.size() < 2) return std::nullopt;
  const auto own = std::find_if(observations_.begin(), observations_.end(),
                                [&](const auto& seen) { return seen.group == group->second; });
  const auto place = static_cast<std::size_t>(own - observations_.begin());
  const Estimate& estimate = newest_correction().left_out()[place];
  return Prediction{estimate.time, estimate.relative_sd};
}

}  // namespace dstune
