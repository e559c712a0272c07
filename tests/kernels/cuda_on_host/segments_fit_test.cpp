// What fits by the caching model fits a GPU that has its segments and not a byte more.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/families/families.hpp"
#include "core/train/training_step.hpp"
#include "kernels/cuda/device/virtual_memory.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/test_size.hpp"

namespace dstune::segments_fit_test {
namespace {

constexpr int kRanks = 8;
constexpr Bytes kUnlimited = Bytes{1} << 46U;

struct Case {
  std::string model;
  int stage = 0;
  int micro_batch = 1;
  int accumulation = 1;
  bool overlap = false;

  std::string name() const {
    return model + ", stage " + std::to_string(stage) + ", micro-batch " +
           std::to_string(micro_batch) + " x " + std::to_string(accumulation) +
           (overlap ? ", overlap" : "");
  }

  RunSettings settings() const {
    RunSettings settings;
    for (const Family& family : families()) {
      for (const ModelSpec& preset : family.presets()) {
        if (preset.name == model) settings.model = preset;
      }
    }
    settings.sequence_length = 1024;
    settings.allocator = AllocatorModel::caching;
    settings.backend = "cuda";
    return settings;
  }

  StepConfig config() const {
    return make_step_config(
        {{"train_batch_size", micro_batch * accumulation * kRanks},
         {"train_micro_batch_size_per_gpu", micro_batch},
         {"gradient_accumulation_steps", accumulation},
         {"gradient_clipping", 1.0},
         {"bf16", {{"enabled", true}}},
         {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-4}}}}},
         {"zero_optimization",
          {{"stage", stage}, {"overlap_comm", overlap}, {"reduce_bucket_size", 50000000}}}});
  }
};

/// Three dry steps, the allocations of which take segments of `source`.
PeakMemory peak_of(const Case& of, Bytes limit, SegmentSource* source) {
  DryDevice device(limit);
  device.memory().take_segments_from(source);
  device.memory().count_as(AllocatorModel::caching);
  DryCollectives alone(device, 0, kRanks);
  TrainingStep step(of.settings(), of.config(), device, alone);
  for (int i = 0; i < 3; ++i) step.run();
  return device.memory().peak();
}

/// @returns how many were tried
template <class Body>
int for_each_case(Body body) {
  int cases = 0;
  for (const char* model : {"gpt2", "gpt2-large", "gpt2-xl", "llama-3.2-1b", "llama-3.1-8b"}) {
    for (const int stage : {0, 1, 2, 3}) {
      for (const int micro_batch : {1, 2, 3, 4, 7, 8, 16}) {
        for (const int accumulation : {1, 2}) {
          for (const bool overlap : {false, true}) {
            if (stage == 0 && overlap) continue;
            const bool is_chosen = micro_batch == 7 && accumulation == 2;
            if (!test::takes_all() && !is_chosen) continue;
            body(Case{model, stage, micro_batch, accumulation, overlap});
            ++cases;
          }
        }
      }
    }
  }
  return cases;
}

TEST(SegmentsFit, AGpuOfExactlyTheirSize) {
  const int cases = for_each_case([](const Case& one) {
    SCOPED_TRACE(one.name());
    const PeakMemory planned = peak_of(one, kUnlimited, nullptr);
    const Bytes limit = planned.reserved;
    cuda_on_host::set_up({.bytes = limit});
    cuda::VirtualMemory gpu(0, [limit](Bytes) { return limit; });

    EXPECT_NO_THROW(EXPECT_EQ(peak_of(one, limit, &gpu), planned));

    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
    cuda_on_host::set_up({.bytes = planned.allocated - 1});
    EXPECT_THROW(peak_of(one, limit, &gpu), OutOfMemoryError) << "it is the GPU that holds them";
  });
  EXPECT_EQ(cases, test::takes_all() ? 490 : 35);
}

}  // namespace
}  // namespace dstune::segments_fit_test
