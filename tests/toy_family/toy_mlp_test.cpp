// The toy family through the whole of core: read, planned, trained.
#include "tests/toy_family/toy_mlp.hpp"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::toy_mlp_test {
namespace {

using test::all_splits;
using test::config_of;
using test::knobs_of;
using test::largest_difference;
using test::run_training;
using test::Split;
using test::TrainingRun;

constexpr int kSteps = 3;
constexpr double kExact = 1e-5;

// 37 * 12 + 12 * 29 + 29 + 29 * 12 + 12 + 37 * 12 = 1,625 parameters.
RunSettings toy_settings() {
  RunSettings settings = test::tiny_settings();
  settings.model.family = "toy_mlp";
  settings.model.vocab_size = 37;
  settings.model.hidden_size = 12;
  settings.model.inner_size = 29;
  settings.model.initializer_range = 0.2;
  return settings;
}

TrainingRun train(const json::object& config, int ranks) {
  return run_training(make_step_config(config), ranks, kSteps, toy_settings());
}

void expect_equal(const TrainingRun& actual, const TrainingRun& expected) {
  EXPECT_LT(largest_difference(actual.losses, expected.losses), kExact);
  EXPECT_LT(largest_difference(actual.norms, expected.norms), kExact);
  EXPECT_LT(largest_difference(actual, expected), kExact);
}

const TrainingRun& one_rank_without_zero() {
  static const TrainingRun run = train(config_of({}), 1);
  return run;
}

TEST(ToyMlp, IsReadByItsModelType) {
  Problems problems("config.json");
  std::vector<std::string> warnings;

  const auto spec = read_model_object(
      json::parse(R"({"model_type": "toy_mlp", "vocab_size": 37, "hidden_size": 12,
                      "inner_size": 29, "max_positions": 7})")
          .as_object(),
      "inline", "/dstune/model", problems, warnings);

  ASSERT_TRUE(problems.empty());
  EXPECT_EQ(spec->family, "toy_mlp");
  EXPECT_EQ(make_model_parameters(*spec).total(), 1625);
  EXPECT_EQ(model_spec_from_json(to_json(*spec)), *spec);
}

TEST(ToyMlp, StandsAmongWhatIsAccepted) {
  Problems problems("config.json");
  std::vector<std::string> warnings;

  read_model_object({{"model_type", "toy"}}, "inline", "", problems, warnings);

  try {
    problems.throw_if_any();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(R"(accepted: "gpt2", "toy_mlp")"));
  }
}

// Uniform guesses cost ln V; three steps with lr 1e-2 gain something.
TEST(ToyMlp, Learns) {
  const TrainingRun& run = one_rank_without_zero();

  EXPECT_NEAR(run.losses.front(), std::log(37.0), 0.5);
  EXPECT_GT(
      largest_difference(run, run_training(make_step_config(config_of({})), 1, 0, toy_settings())),
      0.05);
}

class ToyEquivalence : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, ToyEquivalence, testing::ValuesIn(all_splits()),
                         test::name_of_split);

TEST_P(ToyEquivalence, TrainsAsOneRankWithoutZero) {
  expect_equal(train(config_of(GetParam()), GetParam().ranks), one_rank_without_zero());
}

TEST_P(ToyEquivalence, TrainsTheSameWithEveryKnobThatOnlyChangesCommunication) {
  for (const char* zero_keys : knobs_of(GetParam())) {
    SCOPED_TRACE(zero_keys);
    expect_equal(train(config_of(GetParam(), zero_keys), GetParam().ranks),
                 one_rank_without_zero());
  }
}

}  // namespace
}  // namespace dstune::toy_mlp_test
