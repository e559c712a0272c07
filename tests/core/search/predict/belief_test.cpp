#include "core/search/predict/belief.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace dstune::belief_test {
namespace {

using Matrix = std::vector<std::vector<double>>;

/// The solution of a system of equations, by Gauss and Jordan.
std::vector<double> solve(Matrix matrix, std::vector<double> right) {
  const std::size_t size = right.size();
  for (std::size_t i = 0; i < size; ++i) {
    const double pivot = matrix[i][i];
    for (double& value : matrix[i]) value /= pivot;
    right[i] /= pivot;
    for (std::size_t j = 0; j < size; ++j) {
      if (j == i) continue;
      const double factor = matrix[j][i];
      for (std::size_t k = 0; k < size; ++k) matrix[j][k] -= factor * matrix[i][k];
      right[j] -= factor * right[i];
    }
  }
  return right;
}

class BeliefTest : public testing::Test {
 protected:
  /// Stages 1 and 2, with and without overlap.
  BeliefTest() {
    for (const int stage : {1, 2}) {
      for (const bool overlap : {false, true}) {
        StepConfig step;
        step.stage = stage;
        step.overlap_comm = overlap;
        steps_.push_back(step);
      }
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      PhysicsGuess guess{.log_time = 0.1 * static_cast<double>(i)};
      guess.directions[0] = 0.2 + 0.05 * static_cast<double>(i);
      guess.directions[kStepParts] = 1;
      physics_.push_back(guess);
    }
  }

  Likeness likeness() const {
    std::vector<Configuration> configurations;
    for (const StepConfig& step : steps_) configurations.push_back({&step, 128, false});
    return Likeness(configurations);
  }

  /// The covariance as the header says it, of the usual size.
  double prior(std::size_t a, std::size_t b) const {
    double sum = physics_[a].directions[0] * physics_[b].directions[0] + 1;
    const double stage = steps_[a].stage == steps_[b].stage ? 1 : std::exp(-0.25);
    const double overlap = steps_[a].overlap_comm == steps_[b].overlap_comm ? 1 : 0;
    sum += 0.06 * 0.06 * (stage + overlap);
    sum += 0.04 * 0.04 * (0.6 + 0.4 * stage) * (0.6 + 0.4 * overlap);
    return sum + (a == b ? 0.004 * 0.004 : 0);
  }

  std::vector<StepConfig> steps_;
  std::vector<PhysicsGuess> physics_;
};

TEST_F(BeliefTest, IsPhysicsBeforeAnythingWasTold) {
  Belief belief(likeness());
  belief.set_physics(physics_);

  EXPECT_DOUBLE_EQ(belief.mean(2), 0.2);
  EXPECT_DOUBLE_EQ(belief.variance(2), prior(2, 2));
  EXPECT_DOUBLE_EQ(belief.covariance(1, 2), prior(1, 2));
}

TEST_F(BeliefTest, IsThatOfANormalDistributionGivenWhatWasTold) {
  Belief belief(likeness());
  const std::vector<std::size_t> told{0, 3};
  const std::vector<double> times{1.0, 1.25};
  for (std::size_t i = 0; i < told.size(); ++i) belief.tell(told[i], times[i], 0.02);
  belief.set_physics(physics_);
  ASSERT_EQ(belief.noise_between(), 0.01);

  Matrix covariance(2, std::vector<double>(2));
  std::vector<double> surprises;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) covariance[i][j] = prior(told[i], told[j]);
    covariance[i][i] += 0.02 * 0.02 + 0.01 * 0.01;
    surprises.push_back(times[i] - physics_[told[i]].log_time);
  }
  const auto weights = solve(covariance, surprises);
  for (std::size_t x = 0; x < 4; ++x) {
    double mean = physics_[x].log_time;
    for (std::size_t i = 0; i < 2; ++i) mean += weights[i] * prior(told[i], x);
    EXPECT_NEAR(belief.mean(x), mean, 1e-12);
    for (std::size_t y = 0; y < 4; ++y) {
      const auto solved = solve(covariance, {prior(told[0], y), prior(told[1], y)});
      const double left =
          prior(x, y) - solved[0] * prior(told[0], x) - solved[1] * prior(told[1], x);
      EXPECT_NEAR(belief.covariance(x, y), left, 1e-12);
    }
    EXPECT_NEAR(belief.variance(x), belief.covariance(x, x), 1e-12);
  }
}

// However often the twins without overlap were measured, overlap may be off by 6 % and more.
TEST_F(BeliefTest, AValueThatWasNeverMeasuredStaysUnknown) {
  Belief belief(likeness());
  for (int i = 0; i < 20; ++i) belief.tell(i % 2 == 0 ? 0 : 2, i % 2 == 0 ? 1.0 : 1.2, 0.001);
  belief.set_physics(physics_);

  EXPECT_LT(std::sqrt(belief.variance(0)), 0.01);
  EXPECT_GT(std::sqrt(belief.variance(1)), 0.06);
}

TEST_F(BeliefTest, TakesWhatScattersForNoise) {
  Belief quiet(likeness());
  Belief noisy(likeness());
  for (int i = 0; i < 12; ++i) {
    const double away = i % 2 == 0 ? 1 : -1;
    quiet.tell(0, 1 + 0.002 * away, 0.001);
    noisy.tell(0, 1 + 0.08 * away, 0.001);
  }
  quiet.set_physics(physics_);
  noisy.set_physics(physics_);

  EXPECT_LE(quiet.noise_between(), 0.01);
  EXPECT_EQ(noisy.noise_between(), 0.1);
  EXPECT_NEAR(noisy.mean(0), 1, 0.01);
}

}  // namespace
}  // namespace dstune::belief_test
