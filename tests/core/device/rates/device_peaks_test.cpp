#include "core/device/rates/device_peaks.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "core/device/dry/dry_device.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/sim/sim_device.hpp"

namespace dstune::device_peaks_test {
namespace {

constexpr Bytes kPlenty = Bytes{400} << 20U;

// 2 * 2048^3 FLOP take 1.7 ms there, 32 MiB to and fro 67 us: launches of 5 us are in both.
TEST(MeasurePeaks, FindsTheSpeedOfTheDevice) {
  sim::SimDevice device(kPlenty, {.flops_per_s = 10e12, .bytes_per_s = 1e12, .latency = 5e-6});

  const auto peaks = measure_peaks(device, DType::bf16, nullptr, kPlenty).value();

  EXPECT_NEAR(peaks.gemm_flops_per_s, 10e12, 0.005 * 10e12);
  EXPECT_LT(peaks.gemm_flops_per_s, 10e12);
  EXPECT_NEAR(peaks.copy_bytes_per_s, 1e12, 0.03 * 1e12);
  EXPECT_LT(peaks.copy_bytes_per_s, 1e12);
}

// The smallest product takes 2 s: no larger one is tried.
TEST(MeasurePeaks, DoesNoMoreOnASlowDeviceThanItMust) {
  sim::SimDevice device(kPlenty, {.flops_per_s = 64 * 64 * 64, .bytes_per_s = 1e6, .latency = 0});

  const auto peaks = measure_peaks(device, DType::fp32, nullptr, kPlenty);

  EXPECT_NEAR(peaks.value().gemm_flops_per_s, 64 * 64 * 64, 1);
  EXPECT_LT(device.now(), 5 * 2 + 1 + 5 * 2.2);  // the product, its numbers, the copy
}

TEST(MeasurePeaks, StaysWithinTheMemory) {
  cpu::CpuDevice device(Bytes{1} << 30U);
  constexpr std::size_t kElements = std::size_t{3} * 256 * 256;
  std::vector<float> memory(kElements + 1, -7);

  const auto peaks = measure_peaks(device, DType::fp32, memory.data(), kElements * sizeof(float));

  EXPECT_GT(peaks.value().gemm_flops_per_s, 0);
  EXPECT_EQ(memory[kElements], -7);
}

TEST(MeasurePeaks, NeedsMemoryAndTime) {
  sim::SimDevice device(kPlenty);
  DryDevice timeless(kPlenty);

  EXPECT_EQ(measure_peaks(device, DType::bf16, nullptr, 3 * 64 * 64 * 2 - 1), std::nullopt);
  EXPECT_EQ(measure_peaks(timeless, DType::bf16, nullptr, kPlenty), std::nullopt);
}

}  // namespace
}  // namespace dstune::device_peaks_test
