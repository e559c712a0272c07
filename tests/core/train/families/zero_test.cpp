// ZeRO's oracle for every family: however states are sharded, the same model is trained.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/experiment/activation_checkpointing.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::zero_test {
namespace {

constexpr int kSteps = 3;
/// Of fp32: the order of additions moves a classifier's parameters by 2e-5 on some processors. A
/// micro-step left out of twelve moves the parameters of every family by 2e-2 and more.
constexpr double kExact = 4e-5;

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

RunSettings settings_of(const test::FamilyFixture& fixture) {
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
  const test::FamilyFixture fixture = test::read_family_fixture(GetParam());
  const RunSettings with_all = settings_of(fixture);
  const RunSettings without_router_loss = settings_of(test::without_router_loss(fixture));
  const auto run = [](const RunSettings& settings, const test::Split& split,
                      const json::value& checkpointing) {
    StepConfig config = make_step_config(test::config_of(split));
    config.checkpointing = activation_checkpointing_from_json(checkpointing);
    return test::run_training(config, split.ranks, kSteps, settings);
  };
  // The size of a micro-batch stays: what is drawn for one, masks or labels, depends on it.
  constexpr std::int64_t kMicroSteps = 12;
  const test::TrainingRun usual = run(with_all, {.accumulation = kMicroSteps}, false);
  // A reentrant checkpoint leaves the routers' loss without a gradient.
  const test::TrainingRun reentrant =
      run(without_router_loss, {.accumulation = kMicroSteps}, false);

  const std::pair<test::Split, json::value> cases[] = {
      {{0, 2}, true},  {{1, 3}, false}, {{2, 2}, "every_1_layers_reentrant"},
      {{3, 2}, false}, {{3, 3}, true},  {{3, 4}, "groups_of_2_layers_reentrant"}};
  for (auto [split, checkpointing] : cases) {
    split.accumulation = kMicroSteps / split.ranks;
    const bool is_reentrant = activation_checkpointing_from_json(checkpointing).reentrant;
    const test::TrainingRun actual =
        run(is_reentrant ? without_router_loss : with_all, split, checkpointing);
    const test::TrainingRun& expected = is_reentrant ? reentrant : usual;

    SCOPED_TRACE(testing::Message() << "stage " << split.stage << ", ranks " << split.ranks
                                    << ", checkpointing " << json::serialize(checkpointing));
    EXPECT_LT(test::largest_difference(actual.losses, expected.losses), kExact);
    EXPECT_LT(test::largest_difference(actual.norms, expected.norms), kExact);
    EXPECT_LT(distance(actual, expected), kExact);
  }
}

// Of one step of two layers on two ranks where nothing is kept or gathered ahead.
std::uint64_t gathers_with(const json::value& checkpointing) {
  StepConfig config = make_step_config(
      test::config_of({.stage = 3, .ranks = 2},
                      R"({"stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0,
          "stage3_param_persistence_threshold": 0})"));
  config.checkpointing = activation_checkpointing_from_json(checkpointing);
  std::uint64_t calls = 0;
  test::on_training_ranks(config, 2, [&](test::TrainingRank& own) {
    own.step.run();
    own.step.run();  // the second follows the record
    if (own.rank != 0) return;
    for (const CollectiveLine& line : own.device.ledger().collectives()) {
      if (line.purpose == Purpose::parameters) calls += line.calls;
    }
  });
  return calls;
}

// GPT-2's layer has six modules with parameters. The last one is there when backward asks for what
// was saved.
TEST(CheckpointingInStage3, GathersWhatRunsAgain) {
  const std::uint64_t usual = gathers_with(false);

  EXPECT_EQ(gathers_with(true), usual + 2 * 5);
  EXPECT_EQ(gathers_with("every_2_layers"), usual + 5);
  EXPECT_EQ(gathers_with("every_1_layers_reentrant"), usual + 2 * 6);
}

}  // namespace
}  // namespace dstune::zero_test
