#include "kernels/cpu/allocator.hpp"

#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

namespace dstune::cpu {

namespace {

using namespace dstune::literals;

constexpr Bytes kNoLimit = ~Bytes{0};

TEST(AllocatorTest, AFreedBlockServesTheNextRequestOfItsSize) {
  for (const Bytes size : {Bytes{1}, Bytes{1000}, 3_MiB, 4_MiB}) {
    Allocator allocator(kNoLimit);
    void* first = allocator.allocate(size);
    allocator.free(first, size);

    void* second = allocator.allocate(size);

    EXPECT_EQ(second, first);
    EXPECT_EQ(allocator.cached(), 0U);
    allocator.free(second, size);
  }
}

TEST(AllocatorTest, ABlockInUseIsNotGivenTwice) {
  Allocator allocator(kNoLimit);

  void* first = allocator.allocate(256);
  void* second = allocator.allocate(256);

  EXPECT_NE(first, second);
  allocator.free(first, 256);
  allocator.free(second, 256);
}

TEST(AllocatorTest, BlocksAreAlignedToACacheLineAndLargeOnesToAHugePage) {
  Allocator allocator(kNoLimit);
  for (const Bytes size : {Bytes{1}, Bytes{65}, Bytes{4097}, 2_MiB, 5_MiB}) {
    void* block = allocator.allocate(size);

    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % (size < 2_MiB ? 64 : 2_MiB), 0U) << size;
    std::memset(block, 1, size);

    allocator.free(block, size);
  }
}

TEST(AllocatorTest, AHugeBlockCostsNothingUntilItIsWritten) {
  constexpr Bytes kBucket = 64_GiB;
  Allocator allocator(kNoLimit);

  auto* block = static_cast<char*>(allocator.allocate(kBucket));

  ASSERT_NE(block, nullptr);
  block[0] = 1;
  block[kBucket - 1] = 1;
  allocator.free(block, kBucket);
}

TEST(AllocatorTest, WhatTheSystemDoesNotHaveIsNull) {
  Allocator allocator(kNoLimit);
  allocator.free(allocator.allocate(3_MiB), 3_MiB);

  EXPECT_EQ(allocator.allocate(Bytes{1} << 60U), nullptr);
  EXPECT_EQ(allocator.allocate(~Bytes{0}), nullptr);
  EXPECT_EQ(allocator.cached(), 0U);  // it was emptied in the attempt
}

TEST(AllocatorTest, TheCacheNeverTakesTheUseAboveTheLimit) {
  Allocator allocator(1000);
  allocator.free(allocator.allocate(600), 600);
  EXPECT_EQ(allocator.cached(), 600U);

  void* other = allocator.allocate(401);

  EXPECT_EQ(allocator.cached(), 0U);
  allocator.free(other, 401);
}

TEST(AllocatorTest, TrimEmptiesTheCache) {
  Allocator allocator(kNoLimit);
  allocator.free(allocator.allocate(100), 100);
  allocator.free(allocator.allocate(3_MiB), 3_MiB);

  allocator.trim();

  EXPECT_EQ(allocator.cached(), 0U);
}

}  // namespace

}  // namespace dstune::cpu
