#include "core/device/dry_device.hpp"

#include <array>
#include <cstdint>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/device/dry_collectives.hpp"

namespace dstune {
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

class AccountingDevice final : public DryDevice {
 public:
  using DryDevice::DryDevice;
  double flops = 0;
  Bytes traffic = 0;

 private:
  void account(double op_flops, Bytes op_traffic) override {
    flops = op_flops;
    traffic = op_traffic;
  }
};

TEST(DryDevice, GemmCountsTwoFlopsPerProductAndEveryOperandOnce) {
  AccountingDevice device(1);
  const Matrix a{nullptr, 5, 3, DType::bf16, 3};  // transposed: 3 x 5
  const Matrix b{nullptr, 5, 7, DType::bf16, 7};
  const Matrix c{nullptr, 3, 7, DType::bf16, 7};

  device.gemm(Transpose::yes, Transpose::no, a, b, 0, c);

  EXPECT_EQ(device.flops, 2.0 * 3 * 5 * 7);
  EXPECT_EQ(device.traffic, 2U * (15 + 35 + 21));
}

TEST(DryDevice, GemmThatAccumulatesReadsItsResultToo) {
  AccountingDevice device(1);
  const Matrix square{nullptr, 4, 4, DType::fp32, 4};

  device.gemm(Transpose::no, Transpose::no, square, square, 1, square);

  EXPECT_EQ(device.traffic, 4U * 4 * 16);
}

TEST(DryDevice, AdamHas28BytesOfTrafficPerElement) {
  AccountingDevice device(1);
  const Tensor tensor{nullptr, 10, DType::fp32};

  device.adam({}, tensor, tensor, tensor, tensor);

  EXPECT_EQ(device.traffic, 280U);
}

TEST(DryDevice, QuantizationReadsAndWritesEveryOperandOnce) {
  AccountingDevice device(1);
  const Tensor full{nullptr, 64, DType::fp16};
  const Tensor packed{nullptr, 32, DType::int8};
  const Tensor steps{nullptr, 2, DType::fp32};

  device.quantize(full, {4}, packed, steps);
  const Bytes there = device.traffic;
  device.dequantize(packed, 4, steps, full);
  const Bytes back = device.traffic;
  device.sum_quantized(packed, 4, steps, 2, packed.slice(0, 16), steps.slice(0, 1));

  EXPECT_EQ(there, 128U + 32 + 8);
  EXPECT_EQ(back, 128U + 32 + 8);
  EXPECT_EQ(device.traffic, 32U + 8 + 16 + 4);
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
}  // namespace dstune
