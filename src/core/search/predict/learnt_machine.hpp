// What a search has learnt of a machine, for the next one on it.
#pragma once

#include <string>

#include "core/base/json.hpp"
#include "core/search/predict/predictor.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune {

struct LearntMachine {
  /// By part: how much longer it takes than by the rates that the machine was measured to have. Of
  /// the part "constant", which is time that nothing explains, 1.
  PartFactors factors = kAsRated;
  int measurements = 0;  ///< that taught it
  std::string model;     ///< of them, for people
  int ranks = 0;         ///< of an experiment

  bool operator==(const LearntMachine&) const = default;
};

/// The fewest measurements from which a machine is learnt.
inline constexpr int kLeastLessons = 5;
/// Factors are kept within [1 / kMostFactor, kMostFactor]: what was fitted from few measurements
/// must not make a part vanish in the next search.
inline constexpr double kMostFactor = 10;

/// What `predictor` has learnt from its own measurements, of whatever model.
LearntMachine learnt_machine(const StepTimePredictor& predictor, std::string model, int ranks);

/// {"factors": {PART: number}, "measurements", "model", "ranks"}.
json::object to_json(const LearntMachine& learnt);
/// Inverse of to_json; parts that are not named have 1. @throws std::exception  if `object` is
/// none, or if a factor is out of its bounds
LearntMachine learnt_machine_from_json(const json::object& object);

/// The factors of to_json(LearntMachine); kAsRated of an empty object, and of what is none.
PartFactors start_factors(const json::object& learnt);

}  // namespace dstune
