#include "core/device/dry/dry_device.hpp"

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "core/device/dry/dry_collectives.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"

namespace dstune::dry_device_test {
namespace {

TEST(DryDevice, BudgetIsExactToTheByte) {
  DryDevice device(100);
  const Buffer held(device, MemoryCategory::gradients, 60);

  EXPECT_THROW(Buffer(device, MemoryCategory::activations, 41), OutOfMemoryError);
  EXPECT_NO_THROW(Buffer(device, MemoryCategory::activations, 40));
  EXPECT_EQ(device.memory().in_use(), 60U);
}

TEST(DryDevice, AddressesOfLiveBuffersAreDistinctAndDoNotOverlap) {
  DryDevice device(Bytes{1} << 40U);
  const Buffer empty(device, MemoryCategory::buckets, 0);
  const Buffer large(device, MemoryCategory::buckets, Bytes{1} << 33U);
  const Buffer after(device, MemoryCategory::buckets, 8);

  const Tensor part = large.tensor(DType::fp32).slice(1 << 20U, 4);

  EXPECT_NE(empty.data(), nullptr);
  EXPECT_LT(empty.data(), large.data());
  EXPECT_LT(part.data, after.data());
  EXPECT_GE(reinterpret_cast<std::uintptr_t>(after.data()),
            reinterpret_cast<std::uintptr_t>(large.data()) + large.size());
}

TEST(DryDevice, NumbersReadBackAreStandIns) {
  DryDevice device(1000);
  const Buffer buffer(device, MemoryCategory::buckets, 16);
  const Tensor tensor = buffer.tensor(DType::fp32);
  std::array<float, 4> values{1, 2, 3, 4};

  device.read(tensor, values);

  EXPECT_FALSE(device.computes());
  EXPECT_EQ(values, (std::array<float, 4>{}));
  EXPECT_EQ(device.read_scalar(tensor.slice(0, 1), HostSync::norm), 0);
  EXPECT_EQ(device.now(), 0);
}

// What a device that derives from it sees.
class AccountingDevice final : public DryDevice {
 public:
  using DryDevice::DryDevice;
  std::string operation;
  Bytes bytes_read = 0;
  Bytes bytes_written = 0;

 private:
  void account(const Work& work) override {
    operation = work.operation;
    bytes_read = work.read_bytes();
    bytes_written = work.written_bytes();
  }
};

TEST(DryDevice, AccountsForTheWorkOfAnOperation) {
  AccountingDevice device(1);
  const Tensor in{nullptr, 10, DType::fp32};
  const Tensor out{nullptr, 10, DType::bf16};

  device.run(Cast{in, out});

  EXPECT_EQ(device.operation, "cast");
  EXPECT_EQ(device.bytes_read, 40U);
  EXPECT_EQ(device.bytes_written, 20U);
  EXPECT_TRUE(device.ledger().passes().empty());
}

TEST(DryDevice, AccountsForTransfersBothEndsOfThem) {
  AccountingDevice device(1);
  const Tensor tensor{nullptr, 2, DType::bf16};
  std::array<float, 2> values{};

  device.write(values, tensor);

  EXPECT_EQ(device.operation, "write");
  EXPECT_EQ(device.bytes_read, 8U);
  EXPECT_EQ(device.bytes_written, 4U);
  device.read(tensor, values);
  EXPECT_EQ(device.operation, "read");
}

TEST(DryDevice, APassIsALineOfTheLedger) {
  AccountingDevice device(1);
  const Tensor tensor{nullptr, 10, DType::fp32};

  device.run(MemoryPass::accumulate, Add{tensor, tensor});
  device.run(MemoryPass::accumulate, Add{tensor, tensor});

  EXPECT_EQ(device.operation, "add");
  ASSERT_EQ(device.ledger().passes().size(), 1U);
  EXPECT_EQ(device.ledger().passes()[0], (PassLine{MemoryPass::accumulate, 2, 160, 80}));
}

TEST(DryDevice, AttentionScratchIsTheImitatedDevices) {
  class Scratch final : public DryDevice {
   public:
    using DryDevice::DryDevice;
    std::int64_t attention_workspace(const AttentionShape& shape) const override {
      return shape.sequence;
    }
  };
  const Scratch real(1);

  EXPECT_EQ(DryDevice(1).attention_workspace({.sequence = 9}), 0);
  EXPECT_EQ(DryDevice(1, &real).attention_workspace({.sequence = 9}), 9);
}

TEST(DryCollectives, CountsFullMessagesOfAnyGroup) {
  DryDevice device(1000);
  DryCollectives collectives(device, 3, 8);
  const Buffer full(device, MemoryCategory::buckets, 64);
  const Tensor whole = full.tensor(DType::fp32);

  collectives.reduce_scatter(whole, whole.slice(6, 2), ReduceOp::sum, Purpose::other);
  collectives.all_gather(whole.slice(6, 2), whole, Purpose::other);
  collectives.all_to_all(whole.slice(0, 8), whole.slice(8, 8), Purpose::other);

  const CollectiveCounts counts = device.ledger().counts();
  EXPECT_EQ(counts[static_cast<std::size_t>(CollectiveKind::reduce_scatter)],
            (CollectiveCount{1, 16, 64}));
  EXPECT_EQ(counts[static_cast<std::size_t>(CollectiveKind::all_gather)],
            (CollectiveCount{1, 16, 64}));
  EXPECT_EQ(counts[static_cast<std::size_t>(CollectiveKind::all_to_all)],
            (CollectiveCount{1, 8, 32}));
}

TEST(DryCollectives, RankMustBeInTheGroup) {
  DryDevice device(1);

  EXPECT_THROW(DryCollectives(device, 2, 2), std::invalid_argument);
  EXPECT_THROW(DryCollectives(device, -1, 2), std::invalid_argument);
}

}  // namespace
}  // namespace dstune::dry_device_test
