#include "core/search/space/known_faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

StepConfig in_stage(int stage) {
  StepConfig config;
  config.stage = stage;
  config.overlap_comm = stage == 3;
  return config;
}

TEST(KnownFaults, DefaultsHaveNone) {
  for (const int stage : {0, 1, 2, 3}) EXPECT_THAT(known_faults(in_stage(stage)), IsEmpty());
}

TEST(KnownFaults, NameVersionsAndSource) {
  StepConfig config = in_stage(3);
  config.hpz_partition_size = 4;

  EXPECT_THAT(
      known_faults(config),
      ElementsAre("stage 3 with zero_hpz_partition_size: training may not converge, or the "
                  "loss is far too large (DeepSpeed 0.12 to 0.16, reports of 2025 are open; "
                  "https://github.com/deepspeedai/DeepSpeed/issues/7164): check that your "
                  "version has it mended",
                  HasSubstr("issues/7606")));
  config.stage = 2;
  config.overlap_comm = false;
  EXPECT_THAT(known_faults(config), IsEmpty()) << "stage 2 does not read it";
}

TEST(KnownFaults, OverlapWithContiguityNeedsZeroOneOrTwo) {
  for (const int stage : {1, 2}) {
    StepConfig config = in_stage(stage);
    config.overlap_comm = true;
    EXPECT_THAT(known_faults(config),
                ElementsAre(HasSubstr("issues/7188"), HasSubstr("issues/8061")));
    config.contiguous_gradients = false;
    EXPECT_THAT(known_faults(config), IsEmpty());
  }
}

TEST(KnownFaults, TheBf16OptimizerHasNoBuckets) {
  StepConfig config = in_stage(1);
  config.overlap_comm = true;
  config.dtype = DType::bf16;
  config.grad_accum_dtype = DType::fp32;

  EXPECT_THAT(known_faults(config), IsEmpty());
}

TEST(KnownFaults, StageThreeHasItsOwn) {
  StepConfig config = in_stage(3);
  config.reduce_scatter = false;
  config.quantized_weights = true;

  EXPECT_THAT(known_faults(config), SizeIs(2));
}

}  // namespace
}  // namespace dstune
