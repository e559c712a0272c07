#include "kernels/cuda/collectives/recent_groups.hpp"

#include <gtest/gtest.h>

namespace dstune::cuda::recent_groups_test {
namespace {

using Members = RecentGroups::Members;
using Groups = std::vector<Members>;

constexpr Bytes kReserve = 1000;

TEST(RecentGroups, TheLeastRecentlyUsedOneMakesRoom) {
  RecentGroups groups(2, kReserve);
  groups.use({1, 2});
  groups.use({1, 3});
  groups.use({1, 2});

  EXPECT_EQ(groups.to_drop_for_one_more(), Groups({{1, 3}}));
  EXPECT_EQ(groups.to_drop(), Groups{});
}

TEST(RecentGroups, RoomForMemoryIsMadeByWhatTheLargestNeeded) {
  RecentGroups groups(10, kReserve);
  groups.use({1, 2});
  groups.add_bytes({1, 2}, 400);
  groups.use({1, 3});
  groups.add_bytes({1, 3}, 300);

  EXPECT_EQ(groups.to_drop_for_one_more(), Groups({{1, 2}}));

  groups.drop({1, 2});

  EXPECT_EQ(groups.to_drop_for_one_more(), Groups{});
  EXPECT_EQ(groups.bytes(), 300U);
}

TEST(RecentGroups, WhatIsKeptStaysWithinTheReserve) {
  RecentGroups groups(10, kReserve);
  for (int other = 2; other <= 4; ++other) {
    groups.use({1, other});
    groups.add_bytes({1, other}, 450);
  }

  EXPECT_EQ(groups.to_drop(), Groups({{1, 2}}));
}

TEST(RecentGroups, PartsCountWithTheirWhole) {
  RecentGroups groups(10, kReserve);
  groups.use({1, 2, 3, 4});
  groups.add_bytes({1, 2, 3, 4}, 600);
  groups.add_bytes({1, 2, 3, 4}, 300);
  groups.use({1, 2});
  groups.add_bytes({1, 2}, 200);

  EXPECT_EQ(groups.bytes(), 1100U);
  EXPECT_EQ(groups.to_drop(), Groups({{1, 2, 3, 4}}));
}

TEST(RecentGroups, OneThatIsTooLargeIsKeptWhileItIsUsed) {
  RecentGroups groups(10, kReserve);
  groups.use({1, 2});
  groups.add_bytes({1, 2}, kReserve + 1);

  EXPECT_EQ(groups.to_drop(), Groups{});
  EXPECT_EQ(groups.to_drop_for_one_more(), Groups({{1, 2}}));
}

TEST(RecentGroups, TheOrderOfRanksMatters) {
  RecentGroups groups(1, kReserve);
  groups.use({1, 2});
  groups.use({2, 1});

  EXPECT_EQ(groups.to_drop(), Groups({{1, 2}}));
}

TEST(RecentGroups, ForgetsWhatWasDropped) {
  RecentGroups groups(2, kReserve);
  groups.use({1, 2});
  groups.drop({1, 2});
  groups.add_bytes({1, 2}, 5000);
  groups.use({1, 3});

  EXPECT_EQ(groups.to_drop_for_one_more(), Groups{});
  EXPECT_EQ(groups.bytes(), 0U);
}

}  // namespace
}  // namespace dstune::cuda::recent_groups_test
