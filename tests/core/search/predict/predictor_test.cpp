#include "core/search/predict/predictor.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "core/search/predict/run_rates.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::predictor_test {
namespace {

using test::TinyExperiment;

MachineRates sim_rates() {
  RunSettings settings;
  settings.backend = "sim";
  return estimated_rates(settings);
}

Measured lasting(Seconds time) {
  Measured measured;
  measured.steps = 3;
  measured.step_time = {time, time, time, 0};
  return measured;
}

std::vector<Experiment> experiments() {
  std::vector<Experiment> all;
  for (const int stage : {0, 1, 2, 3}) {
    for (const std::int64_t micro_batch : {1, 2, 4}) {
      all.push_back(TinyExperiment{.stage = stage, .ranks = 4, .micro_batch = micro_batch}.make());
    }
  }
  return all;
}

/// Predicts after it has learnt that all but the last take `factor` times what it says.
StepTimePredictor taught(const std::vector<Experiment>& all, double factor) {
  StepTimePredictor physics(sim_rates());
  StepTimePredictor predictor(sim_rates());
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    predictor.learn(all[i], lasting(factor * physics.predict(all[i]).step_time));
  }
  return predictor;
}

TEST(StepTimePredictor, SaysThatItKnowsLittleAtFirst) {
  StepTimePredictor predictor(sim_rates());

  EXPECT_GT(predictor.predict(experiments().front()).relative_sd, 0.5);
  EXPECT_EQ(predictor.quality(), PredictorQuality{});
}

TEST(StepTimePredictor, PredictsTheSameAfterItHasWalkedAhead) {
  const auto all = experiments();
  int between = 0;
  StepTimePredictor ahead(sim_rates(), [&] { ++between; });
  StepTimePredictor predictor(sim_rates());

  ahead.walk_ahead(all);
  between = 0;
  ahead.walk_ahead(all);

  EXPECT_EQ(between, 0) << "everything is known";
  for (const Experiment& experiment : all) {
    EXPECT_EQ(ahead.predict(experiment), predictor.predict(experiment));
  }
}

TEST(StepTimePredictor, LearnsHowFastTheMachineIs) {
  const auto all = experiments();
  StepTimePredictor physics(sim_rates());

  const Prediction prediction = taught(all, 7).predict(all.back());

  EXPECT_NEAR(prediction.step_time / physics.predict(all.back()).step_time, 7, 0.1);
  EXPECT_LT(prediction.relative_sd, 0.1);
}

TEST(StepTimePredictor, SaysHowWellItDoes) {
  const auto all = experiments();

  const PredictorQuality quality = taught(all, 7).quality();

  EXPECT_EQ(quality.count, static_cast<int>(all.size()) - 1);
  EXPECT_LT(quality.median_error, 0.01);
  EXPECT_GT(quality.rank_correlation, 0.95);
}

TEST(StepTimePredictor, PredictsWhatItLearntFromTheOthers) {
  const auto all = experiments();
  StepTimePredictor predictor = taught(all, 7);
  const Prediction before = predictor.predict(all.back());
  predictor.learn(all.back(), lasting(100));

  const auto without = predictor.without_own(all.back());

  ASSERT_TRUE(without);
  EXPECT_NEAR(without->step_time / before.step_time, 1, 0.05);
  EXPECT_FALSE(predictor.without_own(TinyExperiment{.micro_batch = 9}.make()));
}

TEST(StepTimePredictor, ARepetitionIsTheSameStep) {
  const auto all = experiments();
  StepTimePredictor predictor = taught(all, 7);
  Experiment again = all.front();
  again.repetition = 1;

  EXPECT_EQ(predictor.predict(again), predictor.predict(all.front()));
}

TEST(StepTimePredictor, AReferenceIsTheSameStep) {
  Experiment reference = experiments().front();
  StepTimePredictor predictor(sim_rates());
  predictor.learn(reference, lasting(2));
  reference.is_reference = true;
  reference.repetition = 1;
  predictor.learn(reference, lasting(2));

  EXPECT_FALSE(predictor.without_own(experiments().front())) << "nothing else is known";
}

TEST(ErrorOf, TwoStepsThatAreAlikeProveLittle) {
  Experiment experiment = experiments().front();
  experiment.settings.measure_steps = 5;
  Measured two = lasting(1);
  two.steps = 2;
  EXPECT_EQ(error_of(experiment, two), 0);

  experiment.give_up_above = 0.5;

  EXPECT_NEAR(error_of(experiment, two), 0.044, 0.001);
  EXPECT_EQ(error_of(experiment, lasting(1)) > 0, true) << "three of five steps";
  two.steps = 5;
  EXPECT_EQ(error_of(experiment, two), 0) << "it was not given up";
}

std::vector<Experiment> overlapping_experiments() {
  ModelSpec model;
  model.num_layers = 3;
  std::vector<Experiment> all;
  for (const int stage : {2, 3}) {
    for (const bool overlap : {true, false}) {
      for (const std::int64_t bucket : {1'000'000, 5'000'000, 50'000'000}) {
        for (const std::int64_t micro_batch : {1, 4, 16}) {
          Experiment experiment =
              TinyExperiment{.stage = stage,
                             .ranks = 8,
                             .micro_batch = micro_batch,
                             .zero = {{"reduce_bucket_size", bucket}, {"overlap_comm", overlap}},
                             .model = model}
                  .make();
          experiment.settings.sequence_length = 64;
          all.push_back(std::move(experiment));
        }
      }
    }
  }
  return all;
}

// What was hidden behind products comes to light when they turn out to be fast.
TEST(StepTimePredictor, FindsTheCriticalPathOfTheRealMachine) {
  RunSettings gpu;
  gpu.backend = "cuda";
  StepTimePredictor truth(sim_rates());
  StepTimePredictor predictor(estimated_rates(gpu));
  for (const Experiment& experiment : overlapping_experiments()) {
    predictor.learn(experiment, lasting(truth.predict(experiment).step_time));
  }

  EXPECT_LT(predictor.quality().median_error, 0.01);
  EXPECT_GT(predictor.quality().rank_correlation, 0.99);
}

TEST(StepTimePredictor, IsTheSameEveryTime) {
  const auto all = experiments();

  EXPECT_EQ(taught(all, 3).predict(all.back()), taught(all, 3).predict(all.back()));
}

TEST(StepTimePredictor, RefusesWhatIsNotModelled) {
  StepTimePredictor predictor(sim_rates());
  const auto experiment = TinyExperiment{.stage = 3, .zero = {{"cpu_offload_param", true}}}.make();

  EXPECT_THROW(predictor.predict(experiment), std::invalid_argument);
  predictor.learn(experiment, lasting(1));
  EXPECT_EQ(predictor.quality().count, 0);
}

TEST(StepTimePredictor, LearnsNothingFromAStepWithoutTime) {
  const auto all = experiments();
  StepTimePredictor predictor = taught(all, 7);
  const Prediction before = predictor.predict(all.back());

  predictor.learn(all.back(), lasting(0));

  EXPECT_EQ(predictor.predict(all.back()), before);
}

TEST(IntervalOf, IsNinetyPercentAboutTheTime) {
  const PredictionInterval interval = interval_of({.step_time = 2, .relative_sd = 0.1});

  EXPECT_NEAR(interval.high, 2 * std::exp(0.164485), 1e-5);
  EXPECT_NEAR(interval.low * interval.high, 4, 1e-12);
}

// Predicting after each, as a search does.
TEST(StepTimePredictor, AMeasurementCostsTheSameHoweverManyThereWere) {
  const auto all = experiments();
  StepTimePredictor predictor(sim_rates());
  const auto visited_by = [&](int measurements) {
    const std::size_t before = predictor.rows_visited();
    for (int i = 0; i < measurements; ++i) {
      predictor.learn(all[static_cast<std::size_t>(i) % all.size()], lasting(0.1 + 0.001 * i));
      predictor.predict(all.front());
    }
    return predictor.rows_visited() - before;
  };

  const std::size_t first = visited_by(250);
  const std::size_t second = visited_by(250);

  EXPECT_LT(second, first + first / 2);
  EXPECT_EQ(predictor.quality().count, 500);  // that is of all
}

}  // namespace
}  // namespace dstune::predictor_test
