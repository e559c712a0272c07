#include "core/device/rates/measure_rates.hpp"

#include <gtest/gtest.h>

#include "core/device/dry/clocked_device.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::measure_rates_test {
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

TEST(MeasureRates, TimesTheMessagesThatItIsAskedFor) {
  constexpr GroupMessage kPart{CollectiveKind::all_gather, DType::int8, 2, 1};
  sim::SimDevice device(kPlenty);
  sim::SimCollectives collectives(device, 0, 4, {.latency = 2e-6, .bytes_per_s = 25e9});

  const auto rates = measure_rates(device, collectives, DType::bf16, {}, {kPart});

  EXPECT_EQ(rates.value().dtype, DType::bf16);
  ASSERT_EQ(rates->messages.size(), 1U);
  EXPECT_EQ(rates->messages.front().message, kPart);
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

/// Takes a millisecond for everything; the first product that is timed has to wait for others.
class DisturbedDevice final : public ClockedDevice {
 public:
  using ClockedDevice::ClockedDevice;

 private:
  void account(const Work& work) override {
    advance(work.operation == "gemm" && ++products_ == 2 ? 0.2 : 1e-3);
  }

  int products_ = 0;
};

TEST(MeasureRates, IsNotMisledByWhatTheMachineDoesBesides) {
  DisturbedDevice device(kPlenty);
  DryCollectives collectives(device, 0, 1);

  const auto rates =
      measure_rates(device, collectives, DType::fp32, {{100, 100, 100}, {200, 100, 100}});

  ASSERT_EQ(rates.value().matrices.size(), 2U);
  EXPECT_NEAR(rates->matrices.front().flops_per_s, 2e6 / 0.5e-3, 1);
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

    const auto rates =
        measure_rates(device, collectives, DType::fp32, {{32, 64, 128}}, {}, 1 << 18U);

    EXPECT_FALSE(rates.value().overlaps);
    EXPECT_GT(rates->flops_per_s, 0);
    EXPECT_GT(rates->copy_bytes_per_s, 0);
    EXPECT_EQ(device.memory().in_use(), 0U);
  });
}

}  // namespace
}  // namespace dstune::measure_rates_test
