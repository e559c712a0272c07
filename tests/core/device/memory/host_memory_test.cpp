#include "core/device/memory/host_memory.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace dstune::host_memory_test {
namespace {

constexpr auto kCategory = MemoryCategory::optimizer;

TEST(PinnedModel, RoundsARequestUpToAPowerOfTwo) {
  EXPECT_EQ(PinnedModel::block_size(1), 1U);
  EXPECT_EQ(PinnedModel::block_size(4096), 4096U);
  EXPECT_EQ(PinnedModel::block_size(4097), 8192U);
  EXPECT_EQ(PinnedModel::block_size(13'476'833'280), 17'179'869'184U);
}

TEST(PinnedModel, UsesABlockAgainForARequestOfItsSizeAndNoOther) {
  PinnedModel pinned;
  pinned.take(3000);
  pinned.give_back(3000);
  EXPECT_EQ(pinned.held(), 4096U);

  pinned.take(4000);
  EXPECT_EQ(pinned.held(), 4096U);
  pinned.take(1000);
  EXPECT_EQ(pinned.held(), 4096U + 1024U);
  pinned.take(4096);
  EXPECT_EQ(pinned.held(), 2 * 4096U + 1024U);
}

TEST(HostMemory, KeepsTheFirstMomentOfTheLargestSum) {
  HostMemory memory;
  memory.take(Tier::pageable, kCategory, 100);
  memory.take(Tier::pinned, kCategory, 60);
  memory.give_back(Tier::pageable, 100);
  memory.take(Tier::pinned, kCategory, 100);

  EXPECT_EQ(memory.use(), (HostUse{160, 0}));
  EXPECT_EQ(memory.peak().at_peak, (HostUse{60, 100}));
  EXPECT_EQ(memory.peak().held, 64U + 128U);
}

TEST(HostMemory, WhatIsPinnedStaysHeldWhenItIsGivenBack) {
  HostMemory memory;
  memory.take(Tier::pinned, kCategory, 100);
  memory.give_back(Tier::pinned, 100);
  memory.take(Tier::pageable, kCategory, 10);

  EXPECT_EQ(memory.use(), (HostUse{0, 10}));
  EXPECT_EQ(memory.held(), 138U);
}

TEST(HostMemory, RefusesAByteTooManyAndNothingChanges) {
  HostMemory memory;
  memory.limit_to({.held = 128 + 50});
  memory.take(Tier::pageable, kCategory, 50);
  try {
    memory.take(Tier::pinned, kCategory, 129);
    FAIL() << "256 bytes fit into 128";
  } catch (const OutOfMemoryError& fault) {
    EXPECT_EQ(fault.tier, Tier::pinned);
    EXPECT_EQ(fault.requested, 256U);
    EXPECT_EQ(fault.in_use, 50U);
    EXPECT_EQ(fault.limit, 178U);
    EXPECT_STREQ(fault.what(),
                 "out of the host's memory (pinned): requested 256 B for optimizer with 50 B of "
                 "178 B allocated");
  }
  EXPECT_EQ(memory.held(), 50U);

  memory.take(Tier::pinned, kCategory, 128);
  EXPECT_EQ(memory.held(), 178U);
}

TEST(PeakHostMemory, OfTwoRanksIsThatOfTheFullerHostWithTheMostPinnedAndOnADrive) {
  const PeakHostMemory fuller{.at_peak = {60, 100}, .held = 164, .drive = 5, .pinned = 64};
  const PeakHostMemory other{.at_peak = {70, 20}, .held = 148, .drive = 7, .pinned = 128};
  const PeakHostMemory expected{.at_peak = {60, 100}, .held = 164, .drive = 7, .pinned = 128};

  for (const auto& [first, second] : {std::pair{fuller, other}, {other, fuller}}) {
    PeakHostMemory most = first;
    most.merge(second);
    EXPECT_EQ(most, expected);
  }
}

TEST(HostMemory, BoundsWhatIsPinnedAndLockedTogetherAndNothingElse) {
  HostMemory memory;
  memory.limit_to({.pinned = 128 + 50});
  memory.take(Tier::pageable, kCategory, 1000);
  memory.take(Tier::pinned, kCategory, 100);
  memory.take(Tier::locked, kCategory, 50);
  EXPECT_EQ(memory.peak().pinned, 128U + 50U);
  memory.give_back(Tier::locked, 50);
  try {
    memory.take(Tier::locked, kCategory, 51);
    FAIL() << "51 bytes fit into 50";
  } catch (const OutOfMemoryError& fault) {
    EXPECT_EQ(fault.tier, Tier::locked);
    EXPECT_EQ(fault.requested, 51U);
    EXPECT_EQ(fault.in_use, 128U);
    EXPECT_EQ(fault.limit, 178U);
  }
  EXPECT_THROW(memory.take(Tier::pinned, kCategory, 33), OutOfMemoryError) << "64 as it is held";

  memory.take(Tier::pinned, kCategory, 32);
  EXPECT_EQ(memory.pinned(), 160U);
  EXPECT_EQ(memory.peak().pinned, 178U);
}

TEST(HostMemory, BoundsTheFilesOnADrive) {
  HostMemory memory;
  memory.limit_to({.drive = 100});
  memory.take(Tier::nvme, kCategory, 60);
  try {
    memory.take(Tier::nvme, kCategory, 41);
    FAIL() << "41 bytes fit into 40";
  } catch (const OutOfMemoryError& fault) {
    EXPECT_EQ(fault.tier, Tier::nvme);
    EXPECT_EQ(fault.in_use, 60U);
    EXPECT_EQ(fault.limit, 100U);
  }
  memory.take(Tier::nvme, kCategory, 40);
  EXPECT_EQ(memory.peak().drive, 100U);
}

TEST(HostMemory, BeginsAnewWithoutCacheAndPeak) {
  HostMemory memory;
  memory.take(Tier::pinned, kCategory, 100);
  memory.give_back(Tier::pinned, 100);

  memory.begin_anew();

  EXPECT_EQ(memory.held(), 0U);
  EXPECT_EQ(memory.peak(), PeakHostMemory{});
}

}  // namespace
}  // namespace dstune::host_memory_test
