#include "kernels/cpu/allocator.hpp"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace dstune::cpu::allocator_test {

namespace {

using namespace dstune::literals;

constexpr Bytes kLarge = 32_MiB;

/// The pages that the kernel gave this thread in f().
template <class F>
std::int64_t page_faults(F&& f) {
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_THREAD, &before);
  f();
  getrusage(RUSAGE_THREAD, &after);
  return after.ru_minflt - before.ru_minflt;
}

/// What a step does with memory: takes blocks one after the other, writes them, and frees them in
/// the opposite order.
void run_step(Allocator& allocator, const std::vector<Bytes>& sizes) {
  std::vector<void*> blocks;
  for (const Bytes size : sizes) {
    blocks.push_back(allocator.allocate(size));
    std::memset(blocks.back(), 1, size);
  }
  while (!blocks.empty()) {
    allocator.deallocate(blocks.back(), sizes[blocks.size() - 1]);
    blocks.pop_back();
  }
}

std::int64_t faults_of_third_step(Allocator& allocator, const std::vector<Bytes>& sizes) {
  run_step(allocator, sizes);
  run_step(allocator, sizes);
  return page_faults([&] { run_step(allocator, sizes); });
}

bool is_watched() { return Allocator().mapping_threshold() == kLarge; }  // by a sanitizer

TEST(Allocator, BlocksAreAlignedToACacheLine) {
  Allocator allocator;
  for (const Bytes size : {Bytes{1}, Bytes{65}, Bytes{4097}, 5_MiB, kLarge}) {
    void* block = allocator.allocate(size);

    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << size;
    std::memset(block, 1, size);

    allocator.deallocate(block, size);
  }
}

TEST(Allocator, ABlockInUseIsNotGivenTwice) {
  Allocator allocator;
  void* first = allocator.allocate(256);
  void* second = allocator.allocate(256);

  EXPECT_NE(first, second);
  allocator.deallocate(first, 256);
  allocator.deallocate(second, 256);
}

// As in training, where pages that were given back must be zeroed again.
TEST(Allocator, ALargeBlockIsNewEachTime) {
  Allocator allocator;
  void* first = allocator.allocate(kLarge);
  std::memset(first, 1, kLarge);
  allocator.deallocate(first, kLarge);

  auto* second = static_cast<char*>(allocator.allocate(kLarge));

  EXPECT_EQ(second[0], 0);
  EXPECT_EQ(second[kLarge - 1], 0);
  allocator.deallocate(second, kLarge);
}

TEST(Allocator, AHugeBlockCostsNothingUntilItIsWritten) {
  constexpr Bytes kBucket = 64_GiB;
  Allocator allocator;

  auto* block = static_cast<char*>(allocator.allocate(kBucket));

  ASSERT_NE(block, nullptr);
  block[0] = 1;
  block[kBucket - 1] = 1;
  allocator.deallocate(block, kBucket);
}

TEST(Allocator, WhatTheSystemDoesNotHaveIsNull) {
  Allocator allocator;

  EXPECT_EQ(allocator.allocate(Bytes{1} << 60U), nullptr);
  EXPECT_EQ(allocator.allocate(~Bytes{0}), nullptr);
}

TEST(Allocator, WhatIsInUseStaysWhenTheHeapBeginsAnew) {
  Allocator allocator;
  void* below = allocator.allocate(1_MiB);
  auto* block = static_cast<char*>(allocator.allocate(100'000));
  std::memset(block, 7, 100'000);
  allocator.deallocate(below, 1_MiB);

  allocator.begin_anew();
  trim_heap();

  EXPECT_EQ(block[0], 7);
  EXPECT_EQ(block[99'999], 7);
  allocator.deallocate(block, 100'000);
}

// Random sizes, lifetimes and contents, against the contents that were written.
TEST(Allocator, NoBlockReachesIntoAnother) {
  struct Block {
    unsigned char* data;
    Bytes size;
    unsigned char value;
  };
  Allocator allocator;
  std::vector<Block> blocks;
  std::uint32_t state = 1;
  const auto draw = [&state](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8U) % below;
  };
  for (int i = 0; i < 3000; ++i) {
    if (!blocks.empty() && draw(100) < 48) {
      std::swap(blocks[draw(static_cast<std::uint32_t>(blocks.size()))], blocks.back());
      const Block block = blocks.back();
      ASSERT_EQ(block.data[0], block.value);
      ASSERT_EQ(block.data[block.size - 1], block.value);
      allocator.deallocate(block.data, block.size);
      blocks.pop_back();
    } else {
      const Bytes size = 1 + draw(draw(10) == 0 ? 400'000 : 3000);
      const auto value = static_cast<unsigned char>(i);
      auto* data = static_cast<unsigned char*>(allocator.allocate(size));
      std::memset(data, value, size);
      blocks.push_back({data, size, value});
    }
  }
  for (const Block& block : blocks) allocator.deallocate(block.data, block.size);
  allocator.begin_anew();
  EXPECT_LE(allocator.heap_size(), 128_KiB);
}

TEST(Allocator, TheFirstBlockThatIsFreedRaisesTheThreshold) {
  if (is_watched()) GTEST_SKIP() << "a sanitizer's blocks have no heap";
  Allocator allocator;
  const Bytes first = allocator.mapping_threshold();

  run_step(allocator, {3_MiB});

  EXPECT_EQ(first, 128_KiB);
  EXPECT_GT(allocator.mapping_threshold(), 3_MiB);
  EXPECT_LT(allocator.mapping_threshold(), 3_MiB + 8_KiB);
}

TEST(Allocator, NoBlockAbove32MiBRaisesTheThreshold) {
  Allocator allocator;
  run_step(allocator, {31_MiB});
  const Bytes before = allocator.mapping_threshold();

  run_step(allocator, {40_MiB, 33_MiB});

  EXPECT_EQ(allocator.mapping_threshold(), before);
}

// The end of the heap goes back when twice the largest block is free there.
TEST(Allocator, StepsFaultTheirPagesInWhereTheHeapIsTrimmed) {
  if (is_watched()) GTEST_SKIP() << "a sanitizer's blocks have no heap";
  Allocator few;
  Allocator many;

  const auto of_few = faults_of_third_step(few, {1_MiB, 512_KiB});
  const auto of_many = faults_of_third_step(many, std::vector<Bytes>(20, 1_MiB));

  EXPECT_LT(of_few, 10);
  EXPECT_GT(of_many, 18 * 256);
}

TEST(Allocator, SmallBlocksHoldTheHeapWhereTheyLay) {
  if (is_watched()) GTEST_SKIP() << "a sanitizer's blocks have no heap";
  std::vector<Bytes> step(20, 1_MiB);
  step.push_back(8_MiB);
  Allocator below;
  Allocator above;

  const auto of_below = faults_of_third_step(below, step);
  step.insert(step.end(), 3, 8_MiB);  // more than 16 MiB behind the small ones
  const auto of_above = faults_of_third_step(above, step);

  EXPECT_LT(of_below, 10);
  EXPECT_GT(of_above, 30 * 256);
  EXPECT_LT(of_above, 33 * 256);
}

// What holds an experiment's times to those of others: each begins with the same heap.
TEST(Allocator, ItsFaultsDoNotDependOnWhatWasBefore) {
  if (is_watched()) GTEST_SKIP() << "a sanitizer's blocks have no heap";
  const std::vector<Bytes> step = {300_KiB, 2_MiB, 2_MiB, 2_MiB, 100, 2_MiB, 1_MiB, 1_MiB};
  Allocator fresh;
  const auto expected = faults_of_third_step(fresh, step);
  for (const auto& before : std::vector<std::vector<Bytes>>{{31_MiB, 30_MiB, 5_MiB},
                                                            {1000, 2000},
                                                            {200_MiB, 100_KiB},
                                                            std::vector<Bytes>(50, 1_MiB)}) {
    Allocator allocator;
    run_step(allocator, before);
    allocator.begin_anew();

    EXPECT_EQ(allocator.mapping_threshold(), 128_KiB);
    EXPECT_NEAR(static_cast<double>(faults_of_third_step(allocator, step)),
                static_cast<double>(expected), 4);
  }
}

}  // namespace

}  // namespace dstune::cpu::allocator_test
