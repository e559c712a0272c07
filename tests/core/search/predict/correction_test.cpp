#include "core/search/predict/correction.hpp"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace dstune::correction_test {
namespace {

/// Steps of three parts in proportions that differ, from a fixed sequence.
class Steps {
 public:
  StepTime next() {
    StepTime step;
    step.at(StepPart::products) = 0.1 + uniform();
    step.at(StepPart::update) = uniform() / 2;
    step.at(StepPart::all_reduce) = uniform();
    return step;
  }
  double uniform() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11U) / 9007199254740992.0;
  }
  /// Mean 0, standard deviation 1.
  double normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum - 6;
  }

 private:
  std::uint64_t state_ = 1;
};

/// A machine that is slower than physics says, everywhere by another factor.
Seconds truth(const StepTime& step) {
  return 3 * step.at(StepPart::products) + 1.5 * step.at(StepPart::update) +
         5 * step.at(StepPart::all_reduce);
}

std::vector<Observation> observations(Steps& steps, int count, double noise = 0) {
  std::vector<Observation> seen;
  for (int i = 0; i < count; ++i) {
    const StepTime step = steps.next();
    seen.push_back(
        {.dry = step, .measured = truth(step) * std::exp(noise * steps.normal()), .group = i});
  }
  return seen;
}

TEST(Correction, IsThePhysicsBeforeAnythingWasMeasured) {
  Steps steps;
  const StepTime step = steps.next();

  const Estimate estimate = Correction({}).estimate(step);

  EXPECT_DOUBLE_EQ(estimate.time, step.total());
  EXPECT_GT(estimate.relative_sd, 0.5);
}

TEST(Correction, IsLessSureWhereGroupsDiffer) {
  Steps steps;
  const auto seen = observations(steps, 3);
  const StepTime step = steps.next();

  EXPECT_GT(Correction(seen, 0.3).estimate(step).relative_sd,
            1.5 * Correction(seen).estimate(step).relative_sd);
  EXPECT_GT(Correction({}, 2).estimate(step).relative_sd, 2);
}

// By then they have shown how they differ.
TEST(Correction, BelievesManyMeasurementsRatherThanTheGroups) {
  Steps steps;
  const auto seen = observations(steps, 100);
  const StepTime step = steps.next();

  EXPECT_LT(Correction(seen, 0.3).estimate(step).relative_sd,
            1.5 * Correction(seen).estimate(step).relative_sd);
}

TEST(Correction, OneMeasurementGivesTheScale) {
  Steps steps;
  const StepTime step = steps.next();

  const Correction correction({{.dry = step, .measured = 100 * step.total()}});

  EXPECT_NEAR(correction.estimate(step).time / (100 * step.total()), 1, 0.01);
}

TEST(Correction, FindsTheFactorOfEachPart) {
  Steps steps;
  const Correction correction(observations(steps, 40));

  EXPECT_NEAR(correction.coefficients()[index_of(StepPart::products)], 3, 0.1);
  EXPECT_NEAR(correction.coefficients()[index_of(StepPart::update)], 1.5, 0.2);
  EXPECT_NEAR(correction.coefficients()[index_of(StepPart::all_reduce)], 5, 0.1);
  const StepTime step = steps.next();
  EXPECT_NEAR(correction.estimate(step).time / truth(step), 1, 0.01);
}

// The guess of a drive may be far off, of which the passes beside it are innocent.
TEST(Correction, LearnsOfADriveApartFromThePasses) {
  Steps steps;
  std::vector<Observation> seen;
  for (int i = 0; i < 40; ++i) {
    StepTime step = steps.next();
    step.at(StepPart::step_passes) = step.at(StepPart::update);
    step.at(StepPart::drive) = i % 2 == 0 ? 0 : step.at(StepPart::all_reduce);
    const Seconds late = 5 * step.at(StepPart::drive) - step.at(StepPart::drive);
    seen.push_back({.dry = step, .measured = step.total() + late, .group = i});
  }

  const Correction correction(seen);

  EXPECT_NEAR(correction.coefficients()[index_of(StepPart::drive)], 5, 0.2);
  EXPECT_NEAR(correction.coefficients()[index_of(StepPart::step_passes)], 1, 0.2);
}

TEST(Correction, KnowsHowMuchItsMeasurementsScatter) {
  Steps steps;
  const Correction calm(observations(steps, 40, 0.01));
  const Correction noisy(observations(steps, 40, 0.1));
  const StepTime step = steps.next();

  EXPECT_LT(calm.estimate(step).relative_sd, 0.03);
  EXPECT_GT(noisy.estimate(step).relative_sd, 0.07);
}

TEST(Correction, IntervalsHoldWhatTheySay) {
  Steps steps;
  const Correction correction(observations(steps, 60, 0.05));
  int inside = 0;
  constexpr int kNew = 400;
  for (int i = 0; i < kNew; ++i) {
    const StepTime step = steps.next();
    const Estimate estimate = correction.estimate(step);
    const double measured = truth(step) * std::exp(0.05 * steps.normal());
    inside += std::fabs(std::log(measured / estimate.time)) < kInside90 * estimate.relative_sd;
  }

  EXPECT_GT(inside, 0.85 * kNew);
  EXPECT_LT(inside, 0.97 * kNew);
}

TEST(Correction, NoCoefficientIsNegative) {
  Steps steps;
  auto seen = observations(steps, 30);
  for (Observation& each : seen) {  // as if communication made steps shorter
    each.measured = 4 - each.dry.at(StepPart::all_reduce);
  }

  const Correction correction(seen);

  for (const double coefficient : correction.coefficients()) EXPECT_GE(coefficient, 0);
}

TEST(Correction, IsLessSureOfWhatItHasNotSeen) {
  Steps steps;
  const Correction correction(observations(steps, 40, 0.02));
  const StepTime known = steps.next();
  StepTime unknown = known;
  unknown.at(StepPart::all_gather) = known.total();

  EXPECT_GT(correction.estimate(unknown).relative_sd, 3 * correction.estimate(known).relative_sd);
}

TEST(Correction, LeavesOutAllMeasurementsOfAStep) {
  Steps steps;
  auto seen = observations(steps, 20);
  Observation odd = seen.front();
  odd.measured *= 2;
  odd.group = 100;
  seen.push_back(odd);
  seen.push_back(odd);

  const Correction correction(seen);

  EXPECT_NEAR(correction.left_out().back().time / odd.measured, 0.5, 0.05);
}

TEST(Correction, WidensIntervalsThatWereWrong) {
  Steps steps;
  auto seen = observations(steps, 40, 0.01);
  for (std::size_t i = 0; i < seen.size(); i += 6) seen[i].measured *= 1.5;

  const Correction correction(seen);

  const PredictorQuality& quality = correction.quality();
  EXPECT_EQ(quality.count, 40);
  int inside = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const Estimate& estimate = correction.left_out()[i];
    inside += std::fabs(std::log(seen[i].measured / estimate.time)) <=
              kInside90 * estimate.relative_sd * (1 + 1e-12);
  }
  EXPECT_GE(inside, 36);
}

TEST(Correction, BelievesExactMeasurementsMore) {
  Steps steps;
  auto seen = observations(steps, 20);
  for (std::size_t i = 0; i < seen.size(); i += 2) {
    seen[i].measured *= 1.4;
    seen[i].relative_noise = 0.4;
  }
  const StepTime step = steps.next();

  EXPECT_NEAR(Correction(seen).estimate(step).time / truth(step), 1, 0.05);
}

// Counts, not times: a quadratic one looks at ten times as many per observation.
TEST(Correction, LooksAtEachObservationAFewTimesHoweverManyThereAre) {
  Steps steps;
  const Correction few(observations(steps, 100));
  const Correction many(observations(steps, 1000));

  EXPECT_EQ(many.rows_visited(), 10 * few.rows_visited());
}

}  // namespace
}  // namespace dstune::correction_test
