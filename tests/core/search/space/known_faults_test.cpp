#include "core/search/space/known_faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::known_faults_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> faults_of(StepConfig config,
                                   const DeepSpeedVersion& version = kNewestDeepSpeed) {
  config.version = version;
  return known_faults(config);
}

StepConfig in_stage(int stage) {
  StepConfig config;
  config.stage = stage;
  config.overlap_comm = stage == 3;
  return config;
}

TEST(KnownFaults, DefaultsHaveNone) {
  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_THAT(faults_of(in_stage(stage)), IsEmpty());
    EXPECT_THAT(faults_of(in_stage(stage), kOldestDeepSpeed), IsEmpty());
  }
}

TEST(KnownFaults, NameVersionsAndSource) {
  StepConfig config = in_stage(3);
  config.hpz_partition_size = 4;

  EXPECT_THAT(
      faults_of(config, {0, 18, 2}),
      ElementsAre("stage 3 with zero_hpz_partition_size: training may not converge, or the "
                  "loss is far too large (DeepSpeed 0.12 to 0.16, reports of 2025 are open; "
                  "https://github.com/deepspeedai/DeepSpeed/issues/7164): check that your version "
                  "has the fix",
                  HasSubstr("issues/7606"), HasSubstr("pull/8210")));
  config.stage = 2;
  config.overlap_comm = false;
  EXPECT_THAT(faults_of(config, {0, 18, 2}), IsEmpty()) << "stage 2 does not read it";
}

TEST(KnownFaults, OverlapWithContiguityNeedsZeroOneOrTwo) {
  for (const int stage : {1, 2}) {
    StepConfig config = in_stage(stage);
    config.overlap_comm = true;
    EXPECT_THAT(
        faults_of(config, {0, 17, 4}),
        ElementsAre(HasSubstr("issues/7188"), HasSubstr("pull/7965"), HasSubstr("issues/8061")));
    config.contiguous_gradients = false;
    EXPECT_THAT(faults_of(config, {0, 17, 4}), ElementsAre(HasSubstr("pull/7965")));
  }
}

TEST(KnownFaults, EndWithTheReleaseThatMendsThem) {
  StepConfig config = in_stage(2);
  config.overlap_comm = true;

  EXPECT_THAT(faults_of(config, {0, 17, 5}),
              ElementsAre(HasSubstr("pull/7965"), HasSubstr("issues/8061")));
  EXPECT_THAT(faults_of(config, {0, 19, 0}), ElementsAre(HasSubstr("issues/8061")));
  EXPECT_THAT(faults_of(config, {0, 19, 3}), IsEmpty());
}

TEST(KnownFaults, TheBf16OptimizerHasItsOwnAndNoBuckets) {
  StepConfig config = in_stage(1);
  config.overlap_comm = true;
  config.dtype = DType::bf16;
  config.grad_accum_dtype = DType::fp32;

  EXPECT_THAT(faults_of(config, {0, 17, 5}), IsEmpty());
  EXPECT_THAT(faults_of(config, {0, 18, 5}), ElementsAre(HasSubstr("pull/7985")));
  EXPECT_THAT(faults_of(config, {0, 19, 0}), IsEmpty());
  config.immediate_grad_update = true;
  EXPECT_THAT(faults_of(config, {0, 18, 5}), IsEmpty());
}

// Only where steps are skipped at all.
TEST(KnownFaults, SumsInFp32OfAnOffloadedOptimizerDoNotOutliveASkippedStep) {
  StepConfig config = in_stage(2);
  config.optimizer_device = OffloadDevice::cpu;
  config.dtype = DType::bf16;
  config.grad_accum_dtype = DType::fp32;
  EXPECT_THAT(faults_of(config), ElementsAre(HasSubstr("all others are skipped")));

  config.check_grad_overflow = false;
  EXPECT_THAT(faults_of(config), IsEmpty());
  config.dtype = DType::fp16;
  EXPECT_THAT(faults_of(config), ElementsAre(HasSubstr("all others are skipped")));
  config.optimizer_device = OffloadDevice::none;
  EXPECT_THAT(faults_of(config), IsEmpty());
}

TEST(KnownFaults, StageThreeHasItsOwn) {
  StepConfig config = in_stage(3);
  config.use_all_reduce_for_fetch_params = true;
  config.quantized_weights = true;

  EXPECT_THAT(faults_of(config, {0, 19, 3}), SizeIs(2));
  EXPECT_THAT(faults_of(config), ElementsAre(HasSubstr("issues/4852")));
}

}  // namespace
}  // namespace dstune::known_faults_test
