#include "core/search/predict/foretold.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/predict/run_rates.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::foretold_test {
namespace {

using test::TinyExperiment;
using testing_support::TemporaryDirectory;

class Foretell : public testing::Test {
 protected:
  Foretell() {
    config_.autotuning.results_dir = folder_.path();
    config_.settings.backend = "cpu";
  }

  static Experiment experiment(std::int64_t micro_batch, int stage = 0) {
    return TinyExperiment{.stage = stage, .ranks = 2, .micro_batch = micro_batch}.make();
  }

  /// Leaves a run in which each step took three times what is estimated.
  void run(const std::string& backend = "cpu") const {
    StepTimePredictor physics(estimated_rates(experiment(1).settings));
    Journal journal(folder_ / "journal.jsonl", Journal::Mode::create,
                    {to_json(experiment(1).settings.model), backend, "a machine"});
    for (const std::int64_t micro_batch : {1, 2, 3, 4, 6}) {
      const Experiment done = experiment(micro_batch);
      const Seconds time = 3 * physics.predict(done).step_time;
      Measured outcome;
      outcome.steps = 3;
      outcome.step_time = {time, time, time, 0};
      journal.finished({done, outcome, {1, 2}});
    }
  }

  TemporaryDirectory folder_;
  TuningConfig config_;
};

TEST_F(Foretell, LearnsFromTheRunInTheFolder) {
  run();
  const Experiment other = experiment(5);
  const Seconds estimated =
      StepTimePredictor(estimated_rates(other.settings)).predict(other).step_time;

  const auto foretold = foretell(config_, {other, experiment(2, 3)});

  ASSERT_TRUE(foretold);
  EXPECT_EQ(foretold->origin, "5 measurements in " + config_.autotuning.results_dir);
  ASSERT_EQ(foretold->steps.size(), 2U);
  EXPECT_NEAR(foretold->steps[0]->step_time / estimated, 3, 0.3);
  EXPECT_GT(foretold->steps[1]->relative_sd, foretold->steps[0]->relative_sd)
      << "stage 3 was never measured";
}

TEST_F(Foretell, SaysNothingWithoutMeasurementsOfSuchGroups) {
  EXPECT_FALSE(foretell(config_, {experiment(1)})) << "there was no run";
  run();
  EXPECT_FALSE(foretell(config_, {TinyExperiment{.ranks = 4}.make()}));
  EXPECT_FALSE(foretell(config_, {}));
}

TEST_F(Foretell, KnowsNothingOfAnotherBackend) {
  run("sim");

  EXPECT_FALSE(foretell(config_, {experiment(1)}));
}

TEST_F(Foretell, LeavesAFileOfSomebodyElseAside) {
  write_file_atomically(folder_ / "journal.jsonl", "my notes\n", Durability::process_crash);

  EXPECT_FALSE(foretell(config_, {experiment(1)}));
}

TEST(ForetoldText, NamesTheInterval) {
  EXPECT_EQ(foretold_text({0.8, 0}), "800.0 ms, with 90 % between 800.0 ms and 800.0 ms");
}

}  // namespace
}  // namespace dstune::foretold_test
