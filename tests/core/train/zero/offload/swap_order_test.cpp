// In which order sub-groups are read, updated and written, and where the host waits.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "core/train/zero/offload/nvme/optimizer_swapper.hpp"
#include "tests/support/noting_device.hpp"

namespace dstune::swap_order_test {
namespace {

constexpr std::int64_t kNumel = 262'144;  // of each of three sub-groups: 1 MiB in fp32
constexpr std::size_t kGroups = 3;

ModelParameters three_tensors() {
  ModelParameters model;
  for (std::size_t i = 0; i < kGroups; ++i) {
    model.tensors.push_back({.name = concat("tensor", i), .shape = {kNumel}});
  }
  return model;
}

StepConfig config_of(bool reads_ahead, bool writes_behind) {
  StepConfig config;
  config.stage = 3;
  config.sub_group_size = kNumel;
  config.optimizer_device = OffloadDevice::nvme;
  config.optimizer_nvme_path = "/";
  config.optimizer_buffer_count = 12;
  config.pipeline_read = reads_ahead;
  config.pipeline_write = writes_behind;
  return config;
}

class Swapping {
 public:
  Swapping(bool reads_ahead, bool writes_behind)
      : config_(config_of(reads_ahead, writes_behind)),
        model_(three_tensors()),
        layout_(make_parameter_groups(config_.optimizer, model_), model_, 1, kNumel),
        gradient_(make_buffer(device_, MemoryCategory::gradients, kNumel, DType::fp32)),
        parameters_(make_buffer(device_, MemoryCategory::parameters, kNumel, DType::fp32)),
        swapper_(device_, config_, layout_, 0) {}

  std::string backward() {
    for (std::size_t group = 0; group < kGroups; ++group) {
      swapper_.take(group, {{0, gradient_.tensor(DType::fp32), nullptr}});
    }
    return device_.take_notes();
  }
  std::string update() {
    for (std::size_t group = 0; group < kGroups; ++group) {
      swapper_.update(group, {.optimizer = &config_.optimizer}, 1, [&](const PlacedTensor& master) {
        copy_weights(device_, master, {parameters_.tensor(DType::fp32)});
      });
    }
    return device_.take_notes();
  }

 private:
  // Each sub-group has four files of 1 MiB: master, two states, gradients.
  test::NotingDevice device_{Bytes{4} << 20U, test::NotingDevice::Repeats::once};
  StepConfig config_;
  ModelParameters model_;
  ShardLayout layout_;
  Buffer gradient_;
  Buffer parameters_;
  OptimizerSwapper swapper_;
};

std::string second_update(bool reads_ahead, bool writes_behind) {
  Swapping swapping(reads_ahead, writes_behind);
  swapping.backward();
  swapping.update();
  swapping.backward();
  return swapping.update();
}

TEST(SwapOrder, GradientsAreWrittenWhileOthersFillTheNextBuffer) {
  Swapping swapping(false, false);

  EXPECT_EQ(swapping.backward(), "w0 w1");  // the last one by the first update
}

TEST(SwapOrder, WithoutPipelinesTheHostWaitsForEach) {
  EXPECT_EQ(second_update(false, false),
            "w2 wait r0 wait r0 wait adam w0 wait r1 wait r1 wait adam w1 wait "
            "r2 wait r2 wait adam w2 wait");
}

TEST(SwapOrder, TheFirstStateIsWrittenAfterItsMaster) {
  Swapping swapping(false, false);
  swapping.backward();

  EXPECT_EQ(swapping.update(),
            "w2 wait r0 wait r0 wait adam w0 wait w0 wait r1 wait r1 wait adam w1 wait w1 wait "
            "r2 wait r2 wait adam w2 wait w2 wait");
}

TEST(SwapOrder, TheNextIsReadWhileOneIsUpdated) {
  EXPECT_EQ(second_update(true, false),
            "w2 wait r0 wait r1 adam w0 wait wait r2 adam w1 wait wait adam w2 wait");
}

TEST(SwapOrder, OneIsWrittenWhileTheNextIsUpdated) {
  EXPECT_EQ(second_update(false, true),
            "w2 wait r0 wait adam w0 r1 wait adam wait w1 r2 wait adam wait w2 wait");
}

TEST(SwapOrder, BothPipelinesTogether) {
  EXPECT_EQ(second_update(true, true),
            "w2 wait r0 wait r1 adam w0 wait r2 adam wait w1 wait adam wait w2 wait");
}

}  // namespace
}  // namespace dstune::swap_order_test
