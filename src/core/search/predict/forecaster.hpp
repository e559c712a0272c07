// The interface through which a tuner asks a predictor.
#pragma once

#include <utility>
#include <vector>

#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

/// Predicts step times from what was measured before. It must predict the same after the same calls
/// of learn(); otherwise a resumed run takes another way.
class Forecaster {
 public:
  Forecaster() = default;
  virtual ~Forecaster() = default;
  Forecaster(const Forecaster&) = delete;
  Forecaster& operator=(const Forecaster&) = delete;

  virtual Prediction predict(const Experiment& experiment) = 0;
  /// What is known of the steps' times without residuals.
  virtual std::vector<PhysicsGuess> physics(const std::vector<Experiment>& experiments) = 0;
  virtual void learn(const Experiment& experiment, const Measured& measured) = 0;
};

/// Forecasts with a StepTimePredictor.
class StepTimeForecaster final : public Forecaster {
 public:
  explicit StepTimeForecaster(StepTimePredictor predictor) : predictor_(std::move(predictor)) {}

  Prediction predict(const Experiment& experiment) override {
    return predictor_.predict(experiment);
  }
  std::vector<PhysicsGuess> physics(const std::vector<Experiment>& experiments) override {
    return predictor_.physics(experiments);
  }
  void learn(const Experiment& experiment, const Measured& measured) override {
    predictor_.learn(experiment, measured);
  }

 private:
  StepTimePredictor predictor_;
};

}  // namespace dstune
