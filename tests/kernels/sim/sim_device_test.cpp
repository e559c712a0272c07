#include "kernels/sim/sim_device.hpp"

#include <gtest/gtest.h>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/scalar.hpp"
#include "kernels/sim/sim_collectives.hpp"

namespace dstune::sim::sim_device_test {
namespace {

TEST(SimDevice, MemoryBoundOperationCostsItsTraffic) {
  SimDevice device(1, {.flops_per_s = 1e12, .bytes_per_s = 1000, .latency = 0.5});

  device.run(FillZero{{nullptr, 250, DType::fp32}});

  device.synchronize();
  EXPECT_DOUBLE_EQ(device.now(), 0.5 + 1.0);
}

TEST(SimDevice, ComputeBoundOperationCostsItsFlops) {
  SimDevice device(1, {.flops_per_s = 2000, .bytes_per_s = 1e12, .latency = 0.5});
  const Matrix square{nullptr, 10, 10, DType::fp32, 10};

  device.run(Gemm{.a = square, .b = square, .c = square});

  device.synchronize();
  EXPECT_DOUBLE_EQ(device.now(), 0.5 + 1.0);
}

// The host's code costs what the device has not yet to do: 0.5 s of 2, then all of 2.
TEST(SimDevice, IsIdleWhileTheHostIsBusyAndNothingIsQueued) {
  SimDevice device(1, {.flops_per_s = 1e12, .bytes_per_s = 1000, .latency = 0.5});
  HostOverhead overhead;
  overhead.at(HostEvent::gradient_hook) = 2;
  device.set_host_overhead(overhead);

  device.run(FillZero{{nullptr, 250, DType::fp32}});
  device.host_event(HostEvent::gradient_hook);
  device.host_event(HostEvent::gradient_hook);
  device.synchronize();
  device.timeline().settle(device, device.ledger());

  EXPECT_EQ(device.ledger().host(),
            (std::vector<HostLine>{{HostEvent::gradient_hook, 2, 4.0, 0.5 + 2.0}}));
  EXPECT_DOUBLE_EQ(device.ledger().idle_time(), 2.5);
}

TEST(SimCollectives, AllReduceCostsTwiceTheRing) {
  SimDevice device(1);
  SimCollectives collectives(device, 0, 4, {.latency = 1, .bytes_per_s = 100});

  collectives.all_reduce({nullptr, 100, DType::fp32}, ReduceOp::sum, Purpose::other);

  device.synchronize();
  EXPECT_DOUBLE_EQ(device.now(), 6 * 1.0 + 2 * 0.75 * 400 / 100);
  device.timeline().settle(device, device.ledger());
  EXPECT_DOUBLE_EQ(device.ledger().communication_time(), device.now());
}

TEST(SimCollectives, GatherCostsTheRingOnce) {
  SimDevice device(1);
  SimCollectives collectives(device, 3, 4, {.latency = 1, .bytes_per_s = 100});

  collectives.all_gather({nullptr, 25, DType::fp32}, {nullptr, 100, DType::fp32}, Purpose::other);

  device.synchronize();
  EXPECT_DOUBLE_EQ(device.now(), 3 * 1.0 + 0.75 * 400 / 100);
}

TEST(SimCollectives, AllToAllCostsTheSharesOfTheOthers) {
  SimDevice device(1);
  SimCollectives collectives(device, 3, 4, {.latency = 1, .bytes_per_s = 100});
  const Tensor message{nullptr, 400, DType::int8};

  collectives.all_to_all(message, message, Purpose::other);

  device.synchronize();
  EXPECT_DOUBLE_EQ(device.now(), 3 * 1.0 + 0.75 * 400 / 100);
}

TEST(SimCollectives, OneRankSendsNothing) {
  SimDevice device(1);
  SimCollectives collectives(device, 0, 1);

  collectives.all_reduce({nullptr, 100, DType::fp32}, ReduceOp::sum, Purpose::other);

  device.synchronize();
  EXPECT_EQ(device.now(), 0);
}

const SimNetwork kSlow{.latency = 1, .bytes_per_s = 100};
const SimSpeed kSecondPerFloat{.flops_per_s = 1e12, .bytes_per_s = 4, .latency = 0};
constexpr Tensor kSent{nullptr, 100, DType::fp32};  // with kSlow and 2 ranks: 2 * 1 + 4 s

TEST(SimStreams, WhatIsNotAwaitedRunsBeside) {
  SimDevice device(1, kSecondPerFloat);
  SimCollectives collectives(device, 0, 2, kSlow);

  const Event sum = collectives.all_reduce(kSent, ReduceOp::sum, Purpose::other);
  device.run(FillZero{{nullptr, 5, DType::fp32}});  // until 5 s
  device.await(sum);                                // until 6 s
  device.run(FillZero{{nullptr, 3, DType::fp32}});
  device.synchronize();
  device.timeline().settle(device, device.ledger());

  EXPECT_DOUBLE_EQ(device.now(), 9);
  const CollectiveLine& line = device.ledger().collectives().front();
  EXPECT_DOUBLE_EQ(line.overlapped, 5);
  EXPECT_DOUBLE_EQ(line.exposed, 1);
}

TEST(SimStreams, CollectivesRunOneAfterTheOther) {
  SimDevice device(1, kSecondPerFloat);
  SimCollectives collectives(device, 0, 2, kSlow);

  collectives.all_reduce(kSent, ReduceOp::sum, Purpose::other);
  device.await(collectives.all_reduce(kSent, ReduceOp::sum, Purpose::other));
  device.synchronize();
  device.timeline().settle(device, device.ledger());

  EXPECT_DOUBLE_EQ(device.now(), 12);
  EXPECT_DOUBLE_EQ(device.ledger().collectives().front().exposed, 12);
}

TEST(SimStreams, TheHostRunsAheadOfTheDevice) {
  SimDevice device(1, kSecondPerFloat);

  device.run(FillZero{{nullptr, 5, DType::fp32}});
  device.spend_host_time(2);
  EXPECT_EQ(device.now(), 2);
  device.run(FillZero{{nullptr, 1, DType::fp32}});
  device.synchronize();

  EXPECT_DOUBLE_EQ(device.now(), 6);
}

TEST(SimStreams, AnOperationBeginsWhenTheHostHasComeToIt) {
  SimDevice device(1, kSecondPerFloat);

  device.spend_host_time(4);
  device.run(FillZero{{nullptr, 1, DType::fp32}});
  device.synchronize();

  EXPECT_DOUBLE_EQ(device.now(), 5);
}

TEST(SimStreams, ANumberIsReadWhenItIsThere) {
  SimDevice device(1, kSecondPerFloat);
  const Scalar number(device);

  device.run(FillZero{{nullptr, 5, DType::fp32}});
  device.read_scalar(number.tensor(), HostSync::norm);

  EXPECT_DOUBLE_EQ(device.now(), 5);
}

class SimMemory : public testing::Test {
 protected:
  SimDevice device_{100, kSecondPerFloat};
  Buffer buffer_ = make_buffer(device_, MemoryCategory::temporaries, 25, DType::fp32);

  void use_on(Stream stream) {
    const StreamScope scope(device_, stream);
    device_.run(FillZero{buffer_.tensor(DType::fp32)});  // 25 s
    buffer_.used_on(stream);
  }
};

TEST_F(SimMemory, CountsUntilTheOtherStreamIsDone) {
  use_on(Stream::reduction);
  buffer_.reset();

  EXPECT_EQ(device_.memory().in_use(), 100U);
  EXPECT_EQ(device_.memory().in_flight(), 100U);
  EXPECT_EQ(device_.memory().use().total(), 0U);

  device_.spend_host_time(30);
  const Buffer next = make_buffer(device_, MemoryCategory::temporaries, 1, DType::fp32);

  EXPECT_EQ(device_.memory().in_use(), 4U);
  EXPECT_EQ(device_.memory().peak().allocated, 100U);
  EXPECT_EQ(device_.memory().peak().active, 100U);
}

TEST_F(SimMemory, IsWaitedForBeforeThereIsNone) {
  use_on(Stream::reduction);
  buffer_.reset();

  const Buffer next = make_buffer(device_, MemoryCategory::temporaries, 25, DType::fp32);

  EXPECT_EQ(device_.now(), 25);
  EXPECT_EQ(device_.memory().peak().allocated, 100U);
  EXPECT_EQ(device_.memory().peak().active, 100U);
}

class CachedSimMemory : public testing::Test {
 protected:
  static constexpr Bytes kMiB = Bytes{1} << 20U;

  SimDevice device_{50 * kMiB, kSecondPerFloat};

  CachedSimMemory() { device_.memory().count_as(AllocatorModel::caching); }

  Buffer on(Stream stream, Bytes size) {
    const StreamScope scope(device_, stream);
    return {device_, MemoryCategory::temporaries, size};
  }
};

TEST_F(CachedSimMemory, StaysWithItsStream) {
  on(Stream::gather, 20 * kMiB).reset();
  on(Stream::gather, 20 * kMiB).reset();
  EXPECT_EQ(device_.memory().reserved(), 20 * kMiB);

  on(Stream::compute, 20 * kMiB).reset();

  EXPECT_EQ(device_.memory().reserved(), 40 * kMiB);
}

TEST_F(CachedSimMemory, IsNotReusedBeforeTheOtherStreamIsDone) {
  Buffer first = on(Stream::compute, 20 * kMiB);
  {
    const StreamScope scope(device_, Stream::gather);
    device_.run(FillZero{first.tensor(DType::fp32).slice(0, 25)});  // 25 s
  }
  first.used_on(Stream::gather);
  first.reset();

  on(Stream::compute, 20 * kMiB).reset();
  EXPECT_EQ(device_.memory().reserved(), 40 * kMiB);

  device_.spend_host_time(30);
  const Buffer one = on(Stream::compute, 20 * kMiB);
  const Buffer two = on(Stream::compute, 20 * kMiB);
  EXPECT_EQ(device_.memory().reserved(), 40 * kMiB);
}

TEST_F(CachedSimMemory, OfAnotherStreamIsGivenBackWhereThereIsNone) {
  on(Stream::gather, 30 * kMiB).reset();
  device_.run(FillZero{on(Stream::compute, 100).tensor(DType::fp32)});  // 25 s

  const Buffer next = on(Stream::compute, 30 * kMiB);

  EXPECT_EQ(device_.memory().reserved(), 30 * kMiB) << "the small one is free too";
  EXPECT_EQ(device_.now(), 25) << "as cudaFree waits";
}

TEST_F(SimMemory, OfItsOwnStreamIsFreeAtOnce) {
  use_on(Stream::compute);
  buffer_.reset();

  EXPECT_EQ(device_.memory().in_use(), 0U);
  EXPECT_EQ(device_.now(), 0);
}

}  // namespace
}  // namespace dstune::sim::sim_device_test
