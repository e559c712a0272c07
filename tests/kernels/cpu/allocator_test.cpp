#include "kernels/cpu/allocator.hpp"

#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

namespace dstune::cpu::allocator_test {

namespace {

using namespace dstune::literals;

TEST(Allocator, BlocksAreAlignedToACacheLine) {
  for (const Bytes size : {Bytes{1}, Bytes{65}, Bytes{4097}, 5_MiB, kFromSystem}) {
    void* block = allocate(size);

    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << size;
    std::memset(block, 1, size);

    deallocate(block, size);
  }
}

TEST(Allocator, ABlockInUseIsNotGivenTwice) {
  void* first = allocate(256);
  void* second = allocate(256);

  EXPECT_NE(first, second);
  deallocate(first, 256);
  deallocate(second, 256);
}

// As in training, where pages that were given back must be zeroed again.
TEST(Allocator, ALargeBlockIsNewEachTime) {
  void* first = allocate(kFromSystem);
  std::memset(first, 1, kFromSystem);
  deallocate(first, kFromSystem);

  auto* second = static_cast<char*>(allocate(kFromSystem));

  EXPECT_EQ(second[0], 0);
  EXPECT_EQ(second[kFromSystem - 1], 0);
  deallocate(second, kFromSystem);
}

TEST(Allocator, AHugeBlockCostsNothingUntilItIsWritten) {
  constexpr Bytes kBucket = 64_GiB;

  auto* block = static_cast<char*>(allocate(kBucket));

  ASSERT_NE(block, nullptr);
  block[0] = 1;
  block[kBucket - 1] = 1;
  deallocate(block, kBucket);
}

TEST(Allocator, WhatTheSystemDoesNotHaveIsNull) {
  EXPECT_EQ(allocate(Bytes{1} << 60U), nullptr);
  EXPECT_EQ(allocate(~Bytes{0}), nullptr);
}

TEST(Allocator, WhatIsInUseStaysWhenTheHeapIsTrimmed) {
  auto* block = static_cast<char*>(allocate(1_MiB));
  std::memset(block, 7, 1_MiB);

  trim_heap();

  EXPECT_EQ(block[0], 7);
  EXPECT_EQ(block[1_MiB - 1], 7);
  deallocate(block, 1_MiB);
}

}  // namespace

}  // namespace dstune::cpu::allocator_test
