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
  /// Names the steps of which physics() is to speak.
  virtual void expect(std::vector<Experiment> experiments) = 0;
  /// What is known of the times of the expected steps without residuals, in their order.
  virtual std::vector<PhysicsGuess> physics() = 0;
  virtual void learn(const Experiment& experiment, const Measured& measured) = 0;
};

/// Forecasts with a StepTimePredictor.
class StepTimeForecaster final : public Forecaster {
 public:
  explicit StepTimeForecaster(StepTimePredictor predictor) : predictor_(std::move(predictor)) {}

  Prediction predict(const Experiment& experiment) override {
    return predictor_.predict(experiment);
  }
  void expect(std::vector<Experiment> experiments) override {
    predictor_.expect(std::move(experiments));
  }
  std::vector<PhysicsGuess> physics() override { return predictor_.physics(); }
  void learn(const Experiment& experiment, const Measured& measured) override {
    predictor_.learn(experiment, measured);
  }

 private:
  StepTimePredictor predictor_;
};

}  // namespace dstune
