// What a tuner asks of a predictor.
#pragma once

#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

/// Predicts step times from what was measured before. It must say the same after the same calls of
/// learn(), or a resumed run goes another way.
class Forecaster {
 public:
  Forecaster() = default;
  virtual ~Forecaster() = default;
  Forecaster(const Forecaster&) = delete;
  Forecaster& operator=(const Forecaster&) = delete;

  virtual Prediction predict(const Experiment& experiment) = 0;
  virtual void learn(const Experiment& experiment, const Measured& measured) = 0;
};

}  // namespace dstune
