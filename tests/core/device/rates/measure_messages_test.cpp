#include "core/device/rates/measure_messages.hpp"

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::measure_messages_test {
namespace {

constexpr Bytes kPlenty = Bytes{400} << 20U;

/// On a network whose parts are as fast as itself.
std::vector<MessageRate> simulated(int ranks, const std::vector<GroupMessage>& messages) {
  sim::SimDevice device(kPlenty);
  sim::SimCollectives collectives(device, 0, ranks, {.latency = 2e-6, .bytes_per_s = 25e9});
  return measure_messages(device, collectives, messages);
}

TEST(MeasureMessages, FindsTheRatesOfParts) {
  const std::vector<GroupMessage> messages{{CollectiveKind::all_gather, DType::bf16, 2, 1},
                                           {CollectiveKind::all_to_all, DType::int8, 4, 2},
                                           {CollectiveKind::all_reduce, DType::fp32, 8, 1}};

  const auto rates = simulated(8, messages);

  ASSERT_EQ(rates.size(), messages.size());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    EXPECT_EQ(rates[i].message, messages[i]);
    EXPECT_NEAR(rates[i].rate.latency, 2e-6, 2e-8);
    EXPECT_NEAR(rates[i].rate.bytes_per_s, 25e9, 25e7);
  }
}

TEST(MeasureMessages, LeavesOutWhatDoesNotDivideTheGroup) {
  EXPECT_TRUE(simulated(6, {{CollectiveKind::reduce, DType::fp32, 4, 1},
                            {CollectiveKind::reduce, DType::fp32, 3, 4}})
                  .empty());
}

TEST(MeasureMessages, TakesNoMemoryForNothing) {
  sim::SimDevice tiny(1000);
  sim::SimCollectives collectives(tiny, 0, 2);

  EXPECT_TRUE(measure_messages(tiny, collectives, {}).empty());
}

// Whoever calls another part than the others hangs or throws.
TEST(MeasureMessages, EveryRankCallsItsOwnPart) {
  test::run_on_ranks(4, [](int rank, test::ThreadTeam& team) {
    cpu::CpuDevice device(kPlenty);
    test::ThreadCollectives collectives(device, team, rank);

    const auto rates = measure_messages(device, collectives,
                                        {{CollectiveKind::all_to_all, DType::int8, 2, 2},
                                         {CollectiveKind::broadcast, DType::fp32, 2, 1}},
                                        1 << 18U);

    ASSERT_EQ(rates.size(), 2U);
    EXPECT_GT(rates.front().rate.bytes_per_s, 0);
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
}  // namespace dstune::measure_messages_test
