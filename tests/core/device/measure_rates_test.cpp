#include "core/device/measure_rates.hpp"

#include <gtest/gtest.h>

#include "core/device/dry_collectives.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune {
namespace {

constexpr Bytes kPlenty = Bytes{400} << 20U;
constexpr MatrixShape kProduct{.rows = 512, .cols = 1024, .inner = 2048};
constexpr MatrixShape kNarrow{.rows = 1, .cols = 1024, .inner = 2048};

MachineRates simulated(int ranks, DType dtype, const std::vector<MatrixShape>& shapes,
                       Bytes memory = kPlenty) {
  sim::SimDevice device(memory, {.flops_per_s = 10e12, .bytes_per_s = 1e12, .latency = 5e-6});
  sim::SimCollectives collectives(device, 0, ranks, {.latency = 2e-6, .bytes_per_s = 25e9});
  return measure_rates(device, collectives, dtype, shapes).value();
}

TEST(MeasureRates, FindsTheMachine) {
  const MachineRates rates = simulated(4, DType::bf16, {kProduct, kNarrow});

  EXPECT_TRUE(rates.overlaps);
  EXPECT_NEAR(rates.launch, 5e-6, 1e-9);
  EXPECT_NEAR(rates.copy_bytes_per_s, 1e12, 1e9);
  ASSERT_EQ(rates.matrices.size(), 2U);
  EXPECT_EQ(rates.matrices.front().shape, kProduct);
  EXPECT_NEAR(rates.matrices.front().flops_per_s, 10e12, 1e10);
  EXPECT_LT(rates.matrices.back().flops_per_s, 2e12) << "as its operands are large";
  EXPECT_EQ(rates.flops_per_s, rates.matrices.front().flops_per_s);
}

TEST(MeasureRates, FindsTheNetwork) {
  const MachineRates rates = simulated(4, DType::bf16, {});

  for (const CollectiveRate& rate : rates.collectives) {
    EXPECT_NEAR(rate.latency, 2e-6, 2e-8);
    EXPECT_NEAR(rate.bytes_per_s, 25e9, 25e7);
  }
}

TEST(MeasureRates, OneRankSendsAtOnce) {
  const MachineRates rates = simulated(1, DType::fp32, {});

  EXPECT_EQ(rates.at(CollectiveKind::all_reduce).latency, 0);
  EXPECT_GT(rates.at(CollectiveKind::all_reduce).bytes_per_s, 1e17);
}

TEST(MeasureRates, LeavesOutWhatDoesNotFit) {
  const MachineRates rates = simulated(2, DType::fp32, {kProduct, {100000, 100000, 1}});

  EXPECT_EQ(rates.matrices.size(), 1U);
}

// The first takes a second.
TEST(MeasureRates, LeavesOutWhatIsLongerThanALongProduct) {
  sim::SimDevice device(kPlenty, {.flops_per_s = 2e6, .bytes_per_s = 1e12, .latency = 5e-6});
  DryCollectives collectives(device, 0, 1);

  const auto rates =
      measure_rates(device, collectives, DType::fp32, {{100, 100, 100}, {200, 100, 100}});

  EXPECT_EQ(rates.value().matrices.size(), 1U);
}

TEST(MeasureRates, NeedsTime) {
  DryDevice timeless(kPlenty);
  DryCollectives collectives(timeless, 0, 2);

  EXPECT_EQ(measure_rates(timeless, collectives, DType::fp32, {}), std::nullopt);
}

TEST(MeasureRates, NeedsMemoryForItsMessages) {
  EXPECT_THROW(simulated(2, DType::fp32, {}, 1 << 20U), OutOfMemoryError);
}

TEST(MeasureRates, WorksOnACpu) {
  test::run_on_ranks(2, [](int rank, test::ThreadTeam& team) {
    cpu::CpuDevice device(kPlenty);
    test::ThreadCollectives collectives(device, team, rank);

    const auto rates = measure_rates(device, collectives, DType::fp32, {{32, 64, 128}});

    EXPECT_FALSE(rates.value().overlaps);
    EXPECT_GT(rates->flops_per_s, 0);
    EXPECT_GT(rates->copy_bytes_per_s, 0);
    EXPECT_EQ(device.memory().in_use(), 0U);
  });
}

TEST(FitCollective, FindsLatencyAndBandwidth) {
  const std::vector<double> wire{1e4, 1e5, 1e6, 1e7};
  const auto time = [](double bytes) { return 6 * 1e-5 + bytes / 2e9; };
  const std::vector<Seconds> times{time(1e4), time(1e5), time(1e6), time(1e7)};

  const CollectiveRate rate = fit_collective(6, wire, times);

  EXPECT_NEAR(rate.latency, 1e-5, 1e-9);
  EXPECT_NEAR(rate.bytes_per_s, 2e9, 1e5);
}

TEST(FitCollective, IsNeverNegative) {
  const CollectiveRate rate = fit_collective(1, {1e4, 1e5, 1e6, 1e7}, {1e-6, 1e-5, 2e-4, 9e-3});

  EXPECT_GE(rate.latency, 0);
  EXPECT_GT(rate.bytes_per_s, 0);
}

}  // namespace
}  // namespace dstune
