#include "core/device/operations/quantize.hpp"

#include <gtest/gtest.h>

namespace dstune::quantize_test {
namespace {

constexpr Tensor kFull{nullptr, 64, DType::fp16};    // 128 bytes
constexpr Tensor kPacked{nullptr, 32, DType::int8};  // of 4 bits
constexpr Tensor kSteps{nullptr, 2, DType::fp32};

TEST(WorkOfQuantization, ReadsAndWritesEveryOperandOnce) {
  const Work there = work_of(Quantize{.in = kFull, .how = {4}, .out = kPacked, .steps = kSteps});
  const Work back = work_of(Dequantize{.in = kPacked, .bits = 4, .steps = kSteps, .out = kFull});

  EXPECT_EQ(there.read_bytes(), 128U);
  EXPECT_EQ(there.written_bytes(), 32U + 8);
  EXPECT_EQ(back.read_bytes(), 32U + 8);
  EXPECT_EQ(back.written_bytes(), 128U);
}

TEST(WorkOfQuantization, OfASumReadsAllPartsAndWritesOne) {
  const Work work = work_of(SumQuantized{.in = kPacked,
                                         .bits = 4,
                                         .steps = kSteps,
                                         .parts = 2,
                                         .out = kPacked.slice(0, 16),
                                         .out_steps = kSteps.slice(0, 1)});

  EXPECT_EQ(work.read_bytes(), 32U + 8);
  EXPECT_EQ(work.written_bytes(), 16U + 4);
  EXPECT_EQ(work.flops, 2.0 * 64 + 3 * 32);
}

}  // namespace
}  // namespace dstune::quantize_test
