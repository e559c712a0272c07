// The workspaces of torch's cuBLAS in the peak of a GPU's dry run.
#include "core/train/tape/product_workspaces.hpp"

#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "core/device/dry/dry_device.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::product_workspaces_test {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;

Bytes peak_of(Experiment experiment, const ProductWorkspace& workspace) {
  experiment.settings.product_workspace = workspace;
  experiment.settings.memory_limit = Bytes{1} << 40U;
  return std::get<Measured>(dry_run(experiment, 0).outcome).peak_memory.allocated;
}

/// What the peak has with those of Hopper and not without.
Bytes workspaces_of(const test::TinyExperiment& tiny) {
  const Experiment experiment = tiny.make();
  return peak_of(experiment, {32 * kMiB, kBiasWorkspace}) - peak_of(experiment, {});
}

ModelSpec model(const char* family) { return test::model_of(test::read_family_fixture(family)); }

// Measured of a GPT-2 and a Llama on an H200: docs/memory.md.
TEST(ProductWorkspaces, AreThoseOfTwoThreadsAndOfOneThatAddsBiases) {
  for (const int stage : {0, 3}) {
    EXPECT_EQ(workspaces_of({.stage = stage, .ranks = 2}), 65 * kMiB) << stage;
    EXPECT_EQ(workspaces_of({.stage = stage, .ranks = 2, .model = model("gemma")}), 64 * kMiB)
        << stage;
  }
}

TEST(ProductWorkspaces, AddNoBiasInDeepSpeedsOwnLinear) {
  const auto bert = [](int stage) {
    return workspaces_of({.stage = stage, .ranks = 2, .model = model("bert_masked_lm")});
  };
  EXPECT_EQ(bert(2), 65 * kMiB);
  EXPECT_EQ(bert(3), 64 * kMiB);
}

// A checkpoint's second forward runs on autograd's thread.
TEST(ProductWorkspaces, AddBiasesOnBothThreadsWithCheckpointing) {
  test::TinyExperiment tiny{.ranks = 2};
  tiny.root = {{"dstune", {{"activation_checkpointing", true}}}};

  EXPECT_EQ(workspaces_of(tiny), 66 * kMiB);
}

TEST(ProductWorkspaces, StayWhileTheirOwnerLives) {
  DryDevice device(100);
  {
    ProductWorkspaces workspaces(device, {30, 5});
    EXPECT_EQ(device.memory().use().total(), 0U);
    workspaces.multiply(ProductThread::forward, false);
    workspaces.multiply(ProductThread::forward, false);
    EXPECT_EQ(device.memory().use().total(), 30U);
    workspaces.multiply(ProductThread::backward, true);
    workspaces.multiply(ProductThread::backward, true);
    EXPECT_EQ(device.memory().use().at(MemoryCategory::temporaries), 65U);
  }
  EXPECT_EQ(device.memory().use().total(), 0U);
  DryDevice small(29);
  ProductWorkspaces none(small, {30, 5});
  EXPECT_THROW(none.multiply(ProductThread::forward, false), OutOfMemoryError);
}

}  // namespace
}  // namespace dstune::product_workspaces_test
