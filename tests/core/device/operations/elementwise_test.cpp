#include "core/device/operations/elementwise.hpp"

#include <gtest/gtest.h>

#include "core/device/operations/optimizers.hpp"
#include "core/device/operations/random.hpp"

namespace dstune::elementwise_test {
namespace {

constexpr Tensor kSingle{nullptr, 10, DType::fp32};
constexpr Tensor kHalf{nullptr, 10, DType::bf16};
constexpr Tensor kNumber{nullptr, 1, DType::fp32};
constexpr Tensor kFlag{nullptr, 1, DType::uint8};

void expect_moves(const Work& work, Bytes read, Bytes written) {
  EXPECT_EQ(work.read_bytes(), read) << work.operation;
  EXPECT_EQ(work.written_bytes(), written) << work.operation;
}

TEST(WorkOfFilling, OnlyWrites) {
  expect_moves(work_of(FillZero{kHalf}), 0, 20);
  expect_moves(work_of(FillConstant{kSingle, 1}), 0, 40);
  expect_moves(work_of(FillNormal{.out = kHalf}), 0, 20);
  expect_moves(work_of(FillTokens{.out = {nullptr, 10, DType::int64}, .vocab = 5}), 0, 80);
}

TEST(WorkOfCopying, ReadsOneTypeAndWritesTheOther) {
  expect_moves(work_of(Copy{kHalf, kHalf}), 20, 20);
  expect_moves(work_of(Cast{kHalf, kSingle}), 20, 40);
}

TEST(WorkOfScaling, ReadsAndWritesTheTensorAndNotTheFactor) {
  expect_moves(work_of(Scale{kHalf, 2}), 20, 20);
  expect_moves(work_of(ScaleBy{kHalf, kNumber}), 20, 20);
  EXPECT_EQ(work_of(ScaleBy{kHalf, kNumber}).flops, 10);
}

TEST(WorkOfAdding, ReadsBothAndWritesOne) {
  expect_moves(work_of(Add{kSingle, kSingle}), 80, 40);
  expect_moves(work_of(AddBias{{nullptr, 3, 10, DType::bf16, 10}, kHalf}), 60 + 20, 60);
  expect_moves(work_of(BiasGradient{{nullptr, 3, 10, DType::bf16, 10}, kHalf}), 60, 20);
}

TEST(WorkOfNumbers, ReadsTheTensorAlone) {
  expect_moves(work_of(AddSquares{kHalf, kNumber}), 20, 0);
  expect_moves(work_of(FindInfOrNan{kSingle, kFlag}), 40, 0);
  expect_moves(work_of(ClipFactor{.squares = kNumber, .factor = kNumber}), 0, 0);
}

// What reads and writes a number is ordered by events all the same.
TEST(WorkOfNumbers, TouchesTheNumber) {
  const Work work = work_of(AddSquares{kHalf, kNumber});

  ASSERT_EQ(work.reads.end() - work.reads.begin(), 2);
  EXPECT_EQ(work.reads.begin()[1].extent, 4U);
  ASSERT_EQ(work.writes.end() - work.writes.begin(), 1);
  EXPECT_EQ(work.writes.begin()->extent, 4U);
}

}  // namespace
}  // namespace dstune::elementwise_test
