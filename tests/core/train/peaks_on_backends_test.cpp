// The peaks of a training step on the backend that the program links beside those of its plan.
#include <variant>

#include <gtest/gtest.h>

#include "core/train/run_experiment.hpp"
#include "core/train/training_step.hpp"
#include "tests/support/on_backend.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::peaks_on_backends_test {
namespace {

TEST(PeaksOnBackends, AreThoseOfThePlan) {
  for (const int stage : {2, 3}) {
    test::TinyExperiment tiny{stage, 2, 1, 2, DType::bf16};
    tiny.zero = {{"overlap_comm", true}, {"reduce_bucket_size", 300}};
    const Experiment experiment = tiny.make();
    test::run_on_backend(
        experiment, [&](int rank, Device& device, Collectives& collectives, Group&) {
          TrainingStep step(experiment.settings, make_step_config(experiment), device, collectives);
          for (int i = 0; i < 3; ++i) step.run();

          const PeakMemory run = device.memory().peak();
          const PeakMemory plan =
              std::get<Measured>(dry_run(experiment, rank, &device).outcome).peak_memory;
          EXPECT_EQ(run.allocated, plan.allocated) << tiny.name();
          EXPECT_EQ(run.at_peak, plan.at_peak) << tiny.name();
          EXPECT_EQ(run.categories, plan.categories) << tiny.name();
          EXPECT_GE(run.active, run.allocated) << tiny.name();
          EXPECT_LE(run.active, device.overlaps() ? plan.active : run.allocated) << tiny.name();
        });
  }
}

}  // namespace
}  // namespace dstune::peaks_on_backends_test
