#include "kernels/sim/sim_device.hpp"

#include <gtest/gtest.h>

#include "kernels/sim/sim_collectives.hpp"

namespace dstune::sim {
namespace {

TEST(SimDevice, MemoryBoundOperationCostsItsTraffic) {
  SimDevice device(1, {.flops_per_s = 1e12, .bytes_per_s = 1000, .latency = 0.5});

  device.fill_zero({nullptr, 250, DType::fp32});

  EXPECT_DOUBLE_EQ(device.now(), 0.5 + 1.0);
}

TEST(SimDevice, ComputeBoundOperationCostsItsFlops) {
  SimDevice device(1, {.flops_per_s = 2000, .bytes_per_s = 1e12, .latency = 0.5});
  const Matrix square{nullptr, 10, 10, DType::fp32, 10};

  device.gemm(Transpose::no, Transpose::no, square, square, 0, square);

  EXPECT_DOUBLE_EQ(device.now(), 0.5 + 1.0);
}

TEST(SimCollectives, AllReduceCostsTwiceTheRing) {
  SimDevice device(1);
  SimCollectives collectives(device, 0, 4, {.latency = 1, .bytes_per_s = 100});

  collectives.all_reduce({nullptr, 100, DType::fp32}, ReduceOp::sum, Purpose::other,
                         Stream::reduction);

  EXPECT_DOUBLE_EQ(device.now(), 6 * 1.0 + 2 * 0.75 * 400 / 100);
  EXPECT_DOUBLE_EQ(device.ledger().communication_time(), device.now());
}

TEST(SimCollectives, GatherCostsTheRingOnce) {
  SimDevice device(1);
  SimCollectives collectives(device, 3, 4, {.latency = 1, .bytes_per_s = 100});

  collectives.all_gather({nullptr, 25, DType::fp32}, {nullptr, 100, DType::fp32}, Purpose::other,
                         Stream::gather);

  EXPECT_DOUBLE_EQ(device.now(), 3 * 1.0 + 0.75 * 400 / 100);
}

TEST(SimCollectives, OneRankSendsNothing) {
  SimDevice device(1);
  SimCollectives collectives(device, 0, 1);

  collectives.all_reduce({nullptr, 100, DType::fp32}, ReduceOp::sum, Purpose::other,
                         Stream::reduction);

  EXPECT_EQ(device.now(), 0);
}

}  // namespace
}  // namespace dstune::sim
