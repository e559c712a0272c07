#include "core/search/predict/learnt_machine.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/predict/run_rates.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::learnt_machine_test {
namespace {

using test::TinyExperiment;

Experiment experiment(std::int64_t micro_batch) {
  return TinyExperiment{.stage = 2, .ranks = 2, .micro_batch = micro_batch}.make();
}

StepTimePredictor fresh(const PartFactors& start = kAsRated) {
  return StepTimePredictor(estimated_rates(experiment(1).settings), {}, start);
}

/// Has learnt that each step takes `factor` times what the rates say.
StepTimePredictor taught(double factor, const PartFactors& start = kAsRated) {
  StepTimePredictor physics = fresh();
  StepTimePredictor predictor = fresh(start);
  for (const std::int64_t micro_batch : {1, 2, 3, 4, 6, 8}) {
    const Seconds time = factor * physics.predict(experiment(micro_batch)).step_time;
    Measured measured;
    measured.steps = 5;
    measured.step_time = {time, time, time, 0};
    predictor.learn(experiment(micro_batch), measured);
  }
  return predictor;
}

TEST(LearntMachine, StartsAnotherSearchWithWhatItTook) {
  const LearntMachine learnt = learnt_machine(taught(3), "gpt2", 2);
  EXPECT_EQ(learnt.measurements, 6);

  StepTimePredictor next = fresh(learnt.factors);

  const Experiment other = TinyExperiment{.stage = 1, .ranks = 4, .micro_batch = 2}.make();
  EXPECT_NEAR(next.predict(other).step_time / fresh().predict(other).step_time, 3, 0.3);
  EXPECT_EQ(next.predict(other).relative_sd, fresh().predict(other).relative_sd)
      << "it is believed no more than rates";
}

TEST(LearntMachine, WhatASearchBeganWithIsNotLearntTwice) {
  const LearntMachine first = learnt_machine(taught(3), "gpt2", 2);
  const LearntMachine second = learnt_machine(taught(3, first.factors), "gpt2", 2);

  for (const StepPart part : {StepPart::products, StepPart::update, StepPart::launches}) {
    EXPECT_NEAR(second.factors[index_of(part)] / first.factors[index_of(part)], 1, 0.2)
        << name_of(part);
  }
  EXPECT_EQ(second.factors[index_of(StepPart::constant)], 1);
}

TEST(LearntMachine, SurvivesItsJson) {
  const LearntMachine learnt = learnt_machine(taught(2), "gpt2", 2);

  EXPECT_EQ(learnt_machine_from_json(to_json(learnt)), learnt);
  EXPECT_EQ(start_factors(to_json(learnt)), learnt.factors);
}

TEST(LearntMachine, OfAReleaseThatKnewFewerPartsHasTheOthersAsRated) {
  const LearntMachine learnt = learnt_machine(taught(2), "gpt2", 2);
  json::object older = to_json(learnt);
  ASSERT_EQ(older["factors"].as_object().erase(name_of(StepPart::drive)), 1U);

  PartFactors expected = learnt.factors;
  expected[index_of(StepPart::drive)] = 1;
  EXPECT_EQ(start_factors(older), expected);
}

TEST(LearntMachine, NoFactorGoesBeyondItsBounds) {
  const LearntMachine learnt = learnt_machine(taught(1000), "gpt2", 2);

  EXPECT_EQ(learnt.factors[index_of(StepPart::products)], kMostFactor);
}

TEST(LearntMachine, BelievesNoFactorsThatCannotBe) {
  json::object object = to_json(LearntMachine{});
  object["factors"].as_object()[name_of(StepPart::products)] = 1e9;

  EXPECT_THROW(learnt_machine_from_json(object), std::invalid_argument);
  EXPECT_EQ(start_factors(object), kAsRated);
  EXPECT_EQ(start_factors({}), kAsRated);
  EXPECT_EQ(start_factors({{"factors", 3}}), kAsRated);
}

}  // namespace
}  // namespace dstune::learnt_machine_test
