// What ZeRO does with frozen parameters: numbers written by hand, for the second of the two layers
// of a GPT-2 of 910 elements, which has 341 in 12 tensors, on two ranks in bf16.
#include <algorithm>
#include <variant>

#include <gtest/gtest.h>

#include "core/train/run_experiment.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::frozen_test {
namespace {

constexpr Bytes kHalf = 2;
constexpr Bytes kMasterAndMoments = 12;

test::TinyExperiment half_frozen(int stage) {
  test::TinyExperiment tiny{.stage = stage, .ranks = 2, .dtype = DType::bf16, .client = false};
  tiny.model.fine_tuning.trainable = {"transformer.h.1.*"};
  return tiny;
}

Measured dry(const test::TinyExperiment& tiny) {
  return std::get<Measured>(dry_run(tiny.make(), 0).outcome);
}

std::uint64_t elements(const Measured& measured, Purpose purpose) {
  std::uint64_t sum = 0;
  for (const CollectiveLine& line : measured.ledger.collectives()) {
    if (line.purpose == purpose) sum += line.elements;
  }
  return sum;
}

Bytes peak(const Measured& measured, MemoryCategory category) {
  return measured.peak_memory.categories.at(category);
}

TEST(FrozenParameters, HaveNoMasterAndAreNotAveragedInStage0) {
  const Measured measured = dry(half_frozen(0));

  EXPECT_EQ(elements(measured, Purpose::gradients), 341U);
  EXPECT_EQ(elements(measured, Purpose::parameters), 0U);
  EXPECT_EQ(peak(measured, MemoryCategory::parameters), 910 * kHalf);
  EXPECT_EQ(peak(measured, MemoryCategory::optimizer), 341 * kMasterAndMoments);
}

TEST(FrozenParameters, AreInNoFlatBufferOfStages1And2) {
  for (const int stage : {1, 2}) {
    const Measured measured = dry(half_frozen(stage));

    SCOPED_TRACE(stage);
    EXPECT_EQ(elements(measured, Purpose::gradients), 341U);
    EXPECT_EQ(elements(measured, Purpose::parameters), 344U);  // to a multiple of four
    EXPECT_EQ(peak(measured, MemoryCategory::parameters), (569 + 344) * kHalf);
    EXPECT_EQ(peak(measured, MemoryCategory::optimizer), 172 * kMasterAndMoments);
  }
}

TEST(FrozenParameters, AreShardedAndGatheredButNotReducedInStage3) {
  test::TinyExperiment tiny = half_frozen(3);
  tiny.zero = {{"stage3_param_persistence_threshold", 0},
               {"stage3_max_reuse_distance", 0},
               {"stage3_prefetch_bucket_size", 0}};
  const Measured measured = dry(tiny);

  EXPECT_EQ(elements(measured, Purpose::gradients), 342U);  // one tensor is odd
  EXPECT_EQ(peak(measured, MemoryCategory::optimizer), 171 * kMasterAndMoments);
  // All of a forward; the head's table once more. Backward goes through both layers.
  const std::uint64_t layer = 342;
  EXPECT_GE(elements(measured, Purpose::parameters), 2 * (174 + 12) + 42 + 2 * layer + layer);
}

TEST(FrozenParameters, AreRegatheredAfterTheUpdateWherePersistent) {
  test::TinyExperiment tiny = half_frozen(3);
  tiny.zero = {{"stage3_param_persistence_threshold", 6}};
  const Measured measured = dry(tiny);

  // Of both layers the norms and two biases of 6, and the last norm.
  EXPECT_EQ(elements(measured, Purpose::persistent), 2U * 6 * 6 + 2 * 6);
}

TEST(FrozenParameters, CannotBeStoredInInt8) {
  test::TinyExperiment tiny = half_frozen(3);
  tiny.zero = {{"zero_quantized_nontrainable_weights", true}};
  EXPECT_FALSE(is_modelled(tiny.make()));

  tiny.model.fine_tuning = {};
  EXPECT_TRUE(is_modelled(tiny.make()));
}

}  // namespace
}  // namespace dstune::frozen_test
