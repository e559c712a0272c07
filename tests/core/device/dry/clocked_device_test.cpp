#include "core/device/dry/clocked_device.hpp"

#include <gtest/gtest.h>

namespace dstune::clocked_device_test {
namespace {

constexpr std::size_t kProduct = 3;
constexpr std::size_t kMessage = 5;

class Clocks final : public ClockedDevice {
 public:
  explicit Clocks(bool overlaps = true) : ClockedDevice(1), overlaps_(overlaps) {}

  bool overlaps() const override { return overlaps_; }
  void spend_host_time(Seconds time) override { advance_host(time, 1); }

 private:
  bool overlaps_;
};

/// A message beside a product, which waits for it in the end.
void run_side_by_side(Clocks& device, Seconds product, Seconds message) {
  {
    const StreamScope scope(device, Stream::communication);
    device.advance(message, kMessage);
  }
  device.advance(product, kProduct);
  device.await(device.record(Stream::communication));
  device.host_wait(device.record(Stream::compute));
}

TEST(ClockedDevice, KnowsWhatItWaitedFor) {
  Clocks device;
  run_side_by_side(device, 2, 5);

  EXPECT_EQ(device.now(), 5);
  EXPECT_EQ(device.time_parts()[kMessage], 5);
  EXPECT_EQ(device.time_parts()[kProduct], 0);
}

TEST(ClockedDevice, WhatIsHiddenCostsNothing) {
  Clocks device;
  run_side_by_side(device, 7, 5);

  EXPECT_EQ(device.now(), 7);
  EXPECT_EQ(device.time_parts()[kMessage], 0);
  EXPECT_EQ(device.time_parts()[kProduct], 7);
}

TEST(ClockedDevice, WithoutOverlapAllCounts) {
  Clocks device(false);
  run_side_by_side(device, 7, 5);

  EXPECT_EQ(device.now(), 12);
  EXPECT_EQ(device.time_parts()[kMessage], 5);
  EXPECT_EQ(device.time_parts()[kProduct], 7);
}

TEST(ClockedDevice, WhatIsQueuedBeginsWhenTheHostHasComeToIt) {
  Clocks device;
  device.advance(1, kProduct);
  device.spend_host_time(4);
  device.advance(2, kProduct);
  device.synchronize();

  EXPECT_EQ(device.now(), 6);
  EXPECT_EQ(device.time_parts()[1], 4) << "the first product ended before the host did";
  EXPECT_EQ(device.time_parts()[kProduct], 2);
}

TEST(ClockedDevice, AnEventPassesWithItsStream) {
  Clocks device;
  device.advance(3, kProduct);
  const Event end = device.record(Stream::compute);
  EXPECT_FALSE(device.has_passed(end));
  EXPECT_EQ(device.time_of(end), 3);

  device.host_wait(end);

  EXPECT_TRUE(device.has_passed(end));
}

}  // namespace
}  // namespace dstune::clocked_device_test
