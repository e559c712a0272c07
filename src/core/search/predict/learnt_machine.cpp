#include "core/search/predict/learnt_machine.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

LearntMachine learnt_machine(const StepTimePredictor& predictor, std::string model, int ranks) {
  LearntMachine learnt{
      .measurements = predictor.quality().count, .model = std::move(model), .ranks = ranks};
  learnt.factors = predictor.factors();
  for (double& factor : learnt.factors) factor = std::clamp(factor, 1 / kMostFactor, kMostFactor);
  return learnt;
}

json::object to_json(const LearntMachine& learnt) {
  json::object factors;
  for (std::size_t part = 0; part < kStepParts; ++part) {
    factors[name_of(static_cast<StepPart>(part))] = learnt.factors[part];
  }
  return {{"factors", std::move(factors)},
          {"measurements", learnt.measurements},
          {"model", learnt.model},
          {"ranks", learnt.ranks}};
}

LearntMachine learnt_machine_from_json(const json::object& object) {
  LearntMachine learnt{.measurements = object.at("measurements").to_number<int>(),
                       .model = text_at(object, "model"),
                       .ranks = object.at("ranks").to_number<int>()};
  const json::object& factors = object.at("factors").as_object();
  for (std::size_t part = 0; part < kStepParts; ++part) {
    const std::string_view name = name_of(static_cast<StepPart>(part));
    const json::value* factor = factors.if_contains(name);
    if (factor == nullptr) continue;
    learnt.factors[part] = factor->to_number<double>();
    if (!(learnt.factors[part] >= 1 / kMostFactor && learnt.factors[part] <= kMostFactor)) {
      throw std::invalid_argument(concat("the factor of ", name, " is ", learnt.factors[part]));
    }
  }
  return learnt;
}

PartFactors start_factors(const json::object& learnt) {
  try {
    return learnt.empty() ? kAsRated : learnt_machine_from_json(learnt).factors;
  } catch (const std::exception&) {
    return kAsRated;
  }
}

}  // namespace dstune
