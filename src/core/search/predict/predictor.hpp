// Predicts the time of a step before it runs: physics, corrected by measurements.
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

/// A prediction: the median step time of the next measurement is log-normal about step_time.
struct Prediction {
  Seconds step_time = 0;   ///< per optimizer step, > 0
  double relative_sd = 0;  ///< standard deviation of the logarithm, with the noise of a measurement

  bool operator==(const Prediction&) const = default;
};

/// The interval in which the measurement lies with a chance of 90 %.
struct PredictionInterval {
  Seconds low = 0;
  Seconds high = 0;
};
PredictionInterval interval_of(const Prediction& prediction);

/// Whether only the first steps were measured, since it could not win (Experiment::give_up_above).
bool was_given_up(const Experiment& experiment, const Measured& measured);

/// relative_error(); of a measurement that was given up at least what steps that vary by 5 % leave
/// open.
double error_of(const Experiment& experiment, const Measured& measured);

/// Predicts step times, and predicts the same after the same calls in the same order. All
/// experiments are of one run: same model, ranks and machine.
class StepTimePredictor {
 public:
  /// @param between  called now and then during long work, on the thread that asked for it
  /// @param start  by part, how much longer it is believed to take than by `rates` before anything
  ///               is learnt; believed no more than rates are
  explicit StepTimePredictor(RunRates rates, std::function<void()> between = {},
                             const PartFactors& start = kAsRated);

  /// Takes microseconds if the same experiment, its repetition aside, was seen before, else a dry
  /// step (milliseconds). Before anything was learnt the prediction is worth little, which its
  /// relative_sd says.
  /// @throws std::invalid_argument  if the step is not modelled
  Prediction predict(const Experiment& experiment);

  /// Names the steps of which physics() is to speak.
  void expect(std::vector<Experiment> experiments);
  /// What is known of the times of the expected steps without residuals, in their order. Takes
  /// microseconds for a step whose dry step was walked before.
  /// @throws std::invalid_argument  if a step is not modelled
  std::vector<PhysicsGuess> physics();

  /// Walks the dry steps of those that predict() has not seen, in several threads: its calls for
  /// them will take microseconds.
  void walk_ahead(const std::vector<Experiment>& experiments);

  /// Learns a measurement, which costs milliseconds at the next prediction. A measurement without a
  /// time, or of a step that is not modelled, is left out. After many measurements predictions may
  /// lack the last few (1 in 64), so that a measurement costs the same however many there were
  /// before. Where streams overlap, the 4th, 8th, 16th measurement and so on may show that some
  /// parts take so much longer that others are on the critical path; then all steps are walked
  /// again.
  void learn(const Experiment& experiment, const Measured& measured);

  /// How well it predicts each measurement from all the others.
  PredictorQuality quality() const;

  /// The prediction for `experiment` from all measurements but its own; none if it was not learnt,
  /// or if nothing else was.
  std::optional<Prediction> without_own(const Experiment& experiment) const;

  /// By part, how much longer it takes than by the rates, by all that was learnt; 1 for the
  /// constant part.
  PartFactors factors() const;

  const RunRates& rates() const noexcept { return rates_; }
  /// The number of observations that all corrections so far have looked at.
  std::size_t rows_visited() const noexcept { return rows_visited_; }

 private:
  const StepTime* time_of(const Experiment& experiment, const std::string& key);
  const StepTime& modelled_time_of(const Experiment& experiment);
  const Correction& correction() const;
  /// The correction from all observations, the last ones too.
  const Correction& newest_correction() const;
  bool has_moved() const;
  void walk_again();

  RunRates rates_;
  std::function<void()> between_;
  std::map<std::string, std::optional<StepTime>, std::less<>> times_;  ///< by the experiment's key
  PartFactors factors_;      ///< the factors with which all of times_ were walked
  std::size_t look_at_ = 4;  ///< the number of measurements at which to check has_moved()
  std::vector<Experiment> expected_;
  std::vector<StepTime> expected_times_;  ///< empty: they must be walked
  std::vector<Observation> observations_;
  std::vector<Experiment> experiments_;             ///< the experiment of each observation
  std::map<std::string, int, std::less<>> groups_;  ///< the group of observations, by key
  mutable std::optional<Correction> correction_;    ///< none: it must be made
  mutable std::size_t renew_at_ = 0;  ///< the number of observations at which it is made anew
  mutable std::size_t rows_visited_ = 0;
};

}  // namespace dstune
