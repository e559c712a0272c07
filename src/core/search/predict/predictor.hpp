// How long a step will take, before it runs: physics, corrected by what has been measured.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "core/search/predict/correction.hpp"
#include "core/search/predict/quality.hpp"
#include "core/search/predict/run_rates.hpp"

namespace dstune {

/// The next measurement's median step time is log-normal about step_time.
struct Prediction {
  Seconds step_time = 0;   ///< per optimizer step, > 0
  double relative_sd = 0;  ///< of the logarithm; includes the noise of a measurement

  bool operator==(const Prediction&) const = default;
};

/// Within which the measurement lies with a chance of 90 %.
struct PredictionInterval {
  Seconds low = 0;
  Seconds high = 0;
};
PredictionInterval interval_of(const Prediction& prediction);

/// Says the same for the same calls in the same order. All experiments are of one run: same model,
/// ranks, machine.
class StepTimePredictor {
 public:
  explicit StepTimePredictor(RunRates rates);

  /// Microseconds if the same experiment, its repetition aside, was seen before, else a dry step
  /// (milliseconds). Before anything was learnt it is worth little, and says so.
  /// @throws std::invalid_argument  if the step is not modelled
  Prediction predict(const Experiment& experiment);

  /// Takes a measurement in. Milliseconds at the next prediction. What has no time, or is not
  /// modelled, is left out. Of many measurements predictions may know all but the last few (1 in
  /// 64), so that a measurement costs the same however many there were before. Where streams
  /// overlap, the 4th, 8th, 16th and so on may show that parts take so much longer that others are
  /// on the critical path: then all steps are walked again.
  void learn(const Experiment& experiment, const Measured& measured);

  /// How well it predicts each of what it learnt from the others.
  PredictorQuality quality() const;

  /// What `experiment` was predicted to take from all but its own measurements; none if it is not
  /// among what was learnt, or nothing else is.
  std::optional<Prediction> without_own(const Experiment& experiment) const;

  const RunRates& rates() const noexcept { return rates_; }
  /// Observations looked at by all corrections so far.
  std::size_t rows_visited() const noexcept { return rows_visited_; }

 private:
  const StepTime* time_of(const Experiment& experiment, const std::string& key);
  const Correction& correction() const;
  /// Of all observations, the last ones too.
  const Correction& newest_correction() const;
  bool has_moved() const;
  void walk_again();

  RunRates rates_;
  std::map<std::string, std::optional<StepTime>, std::less<>> times_;  ///< by key
  PartFactors factors_ = kAsRated;  ///< that all of times_ were walked with
  std::size_t look_at_ = 4;         ///< measurements at which to see whether they have moved
  std::vector<Observation> observations_;
  std::vector<Experiment> experiments_;             ///< of the observations
  std::map<std::string, int, std::less<>> groups_;  ///< of the observations, by key
  mutable std::optional<Correction> correction_;    ///< none: to be made
  mutable std::size_t renew_at_ = 0;                ///< observations at which it is made anew
  mutable std::size_t rows_visited_ = 0;
};

}  // namespace dstune
