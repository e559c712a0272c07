// ZeRO's oracle for every family: however states are sharded, the same model is trained.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/family_fixture.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/training_run.hpp"

namespace dstune {
namespace {

constexpr int kSteps = 3;
constexpr double kExact = 2e-5;  // of fp32

/// Of two tensors over the largest magnitude, of all tensors; what is next to nothing is next to
/// nothing in both: a bias of keys, which softmax does not feel, is moved by noise alone.
double distance(const test::TrainingRun& actual, const test::TrainingRun& expected) {
  constexpr double kNothing = 1e-3;
  double largest = 0;
  for (std::size_t tensor = 0; tensor < expected.parameters.size(); ++tensor) {
    double difference = 0;
    double magnitude = kNothing;
    for (std::size_t i = 0; i < expected.parameters[tensor].size(); ++i) {
      const double value = expected.parameters[tensor][i];
      difference = std::max(difference, std::abs(actual.parameters.at(tensor).at(i) - value));
      magnitude = std::max(magnitude, std::abs(value));
    }
    largest = std::max(largest, difference / magnitude);
  }
  return largest;
}

RunSettings settings_of(const std::string& name) {
  const test::FamilyFixture fixture = test::read_family_fixture(name);
  RunSettings settings = test::tiny_settings();
  settings.model = test::model_of(fixture);
  settings.model.initializer_range = 0.2;  // so small a model has tiny gradients with 0.02
  settings.sequence_length = fixture.sequence_length;
  return settings;
}

class FamiliesWithZero : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Families, FamiliesWithZero, testing::ValuesIn(test::family_fixtures()),
                         [](const auto& param_info) { return param_info.param; });

TEST_P(FamiliesWithZero, EveryStageTrainsAsOneRankWithoutIt) {
  const RunSettings settings = settings_of(GetParam());
  const auto run = [&](const test::Split& split) {
    return test::run_training(make_step_config(test::config_of(split)), split.ranks, kSteps,
                              settings);
  };
  // The size of a micro-batch stays: what is drawn for one, masks or labels, depends on it.
  constexpr std::int64_t kMicroSteps = 12;
  const test::TrainingRun expected = run({.accumulation = kMicroSteps});

  for (test::Split split : {test::Split{0, 2}, {1, 3}, {2, 2}, {3, 2}, {3, 4}}) {
    split.accumulation = kMicroSteps / split.ranks;
    const test::TrainingRun actual = run(split);

    SCOPED_TRACE(testing::Message() << "stage " << split.stage << ", ranks " << split.ranks);
    EXPECT_LT(test::largest_difference(actual.losses, expected.losses), kExact);
    EXPECT_LT(test::largest_difference(actual.norms, expected.norms), kExact);
    EXPECT_LT(distance(actual, expected), kExact);
  }
}

}  // namespace
}  // namespace dstune
