// The predictor of step times, as tuners ask it.
#pragma once

#include <utility>

#include "core/search/choice/forecaster.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

class StepTimeForecaster final : public Forecaster {
 public:
  explicit StepTimeForecaster(StepTimePredictor predictor) : predictor_(std::move(predictor)) {}

  Prediction predict(const Experiment& experiment) override {
    return predictor_.predict(experiment);
  }
  void learn(const Experiment& experiment, const Measured& measured) override {
    predictor_.learn(experiment, measured);
  }

 private:
  StepTimePredictor predictor_;
};

}  // namespace dstune
