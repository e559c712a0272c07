// In which order shards of parameters are read and written, and where the host waits.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/experiment/step_refused.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "core/train/zero/offload/nvme/parameter_swapper.hpp"
#include "tests/support/noting_device.hpp"

namespace dstune::parameter_swap_order_test {
namespace {

constexpr std::int64_t kNumel = 262'144;  // of each of three shards: 1 MiB in fp32
constexpr int kBuffers = 2;

class ParametersOnADrive : public testing::Test {
 protected:
  ParametersOnADrive() {
    for (std::size_t tensor = 0; tensor < 3; ++tensor) {
      swapper_.begin(tensor, [](const PlacedTensor&) {});
    }
    swapper_.make_write_back(layout_.sub_groups().front());
  }

  static ModelParameters three_tensors() {
    ModelParameters model;
    for (std::size_t i = 0; i < 3; ++i) {
      model.tensors.push_back({.name = concat("tensor", i), .shape = {kNumel}});
    }
    return model;
  }
  static StepConfig make_config() {
    StepConfig config;
    config.stage = 3;
    config.parameter_device = OffloadDevice::nvme;
    config.parameter_nvme_path = "/";
    config.parameter_buffer_count = kBuffers;
    config.parameter_buffer_size = kNumel;
    return config;
  }

  test::NotingDevice device_{kNumel * sizeof(float)};
  StepConfig config_ = make_config();
  ModelParameters model_ = three_tensors();
  ShardLayout layout_{make_parameter_groups(config_.optimizer, model_), model_, 1, 3 * kNumel};
  ParameterSwapper swapper_{device_, config_, layout_};
};

TEST_F(ParametersOnADrive, AreWrittenOneByOneAsTheyAreMade) {
  EXPECT_EQ(device_.take_notes(), "w0 wait w1 wait w2 wait");
  EXPECT_EQ(swapper_.free_buffers(), 2U);
}

TEST_F(ParametersOnADrive, AreReadTogetherAndAwaitedOnce) {
  device_.take_notes();

  swapper_.bring({0, 2});

  EXPECT_EQ(device_.take_notes(), "r0 r2 wait");
  swapper_.bring({2});
  EXPECT_EQ(device_.take_notes(), "") << "it is there";
  swapper_.let_go({0, 2});
  EXPECT_TRUE(swapper_.is_away(2));
}

TEST_F(ParametersOnADrive, ThatAreReadAheadAreAwaitedWhenAnyIsNeeded) {
  device_.take_notes();

  swapper_.read_ahead({0, 1});

  EXPECT_EQ(device_.take_notes(), "r0 r1");
  EXPECT_FALSE(swapper_.is_away(1));
  EXPECT_FALSE(swapper_.is_in_buffer(1));
  swapper_.bring({0});
  EXPECT_EQ(device_.take_notes(), "wait");
  EXPECT_TRUE(swapper_.is_in_buffer(1)) << "both were awaited";
}

TEST_F(ParametersOnADrive, GetNewValuesByOneWait) {
  device_.take_notes();
  const Buffer values = make_buffer(device_, MemoryCategory::optimizer, kNumel, DType::fp32);

  swapper_.write_back({{0, {values.tensor(DType::fp32)}}, {1, {values.tensor(DType::fp32)}}});

  EXPECT_EQ(device_.take_notes(), "w0 w1 wait");
}

TEST_F(ParametersOnADrive, AreRefusedWhereDeepSpeedHasNoBuffers) {
  EXPECT_THROW(swapper_.bring({0, 1, 2}), StepRefused);
  EXPECT_THROW(swapper_.read_ahead({0, 0}), StepRefused);
}

}  // namespace
}  // namespace dstune::parameter_swap_order_test
