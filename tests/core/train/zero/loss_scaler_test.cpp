#include "core/train/zero/loss_scaler.hpp"

#include <gtest/gtest.h>

namespace dstune::loss_scaler_test {
namespace {

using Kind = LossScaler::Kind;

TEST(LossScaler, IsOneWithoutFp16) {
  LossScaler scaler({}, DType::bf16, Kind::zero);

  scaler.update(true);

  EXPECT_EQ(scaler.scale(), 1);
}

TEST(LossScaler, StaticScaleNeverChanges) {
  LossScaler scaler({.static_scale = 128}, DType::fp16, Kind::zero);

  scaler.update(true);
  scaler.update(true);

  EXPECT_EQ(scaler.scale(), 128);
}

TEST(LossScaler, ZeroHalvesOnlyWhenHysteresisIsUsedUp) {
  LossScaler scaler({}, DType::fp16, Kind::zero);

  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 65536);

  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 32768);
}

TEST(LossScaler, WrapperHalvesAtOnce) {
  LossScaler scaler({}, DType::fp16, Kind::wrapper);

  scaler.update(true);

  EXPECT_EQ(scaler.scale(), 32768);
}

TEST(LossScaler, DoublesAfterAWindowOfCleanSteps) {
  LossScaler scaler({.initial_scale_power = 4, .window = 3}, DType::fp16, Kind::zero);

  scaler.update(false);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 16);

  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 32);
}

TEST(LossScaler, ZeroGivesUpAtTheMinimumWhereTheWrapperStays) {
  const LossScaleConfig config{.initial_scale_power = 0, .hysteresis = 1, .min_scale = 1};
  LossScaler zero(config, DType::fp16, Kind::zero);
  LossScaler wrapper(config, DType::fp16, Kind::wrapper);

  wrapper.update(true);

  EXPECT_EQ(wrapper.scale(), 1);
  EXPECT_THROW(zero.update(true), LossScaleExhausted);
}

}  // namespace
}  // namespace dstune::loss_scaler_test
