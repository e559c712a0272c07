#include "mpi/pool/group_directory.hpp"

#include <gtest/gtest.h>

namespace dstune::group_directory_test {
namespace {

TEST(GroupDirectory, SameRanksKeepTheirTag) {
  GroupDirectory groups;

  const int tag = groups.tag_of({1, 2});

  EXPECT_NE(groups.tag_of({2, 1}), tag);
  EXPECT_EQ(groups.tag_of({1, 2}), tag);
}

TEST(GroupDirectory, EveryNewTagIsLower) {
  GroupDirectory groups;

  const int first = groups.tag_of({1});
  const int second = groups.tag_of({2});
  groups.forget({1});
  const int third = groups.tag_of({1});

  EXPECT_LT(second, first);
  EXPECT_LT(third, second);
}

TEST(GroupDirectory, LeastRecentlyUsedIsEvicted) {
  GroupDirectory groups(2);

  const int first = groups.tag_of({1});
  const int second = groups.tag_of({2});
  groups.tag_of({1});
  groups.tag_of({3});
  const auto evicted = groups.evict();

  ASSERT_TRUE(evicted.has_value());
  EXPECT_EQ(evicted->tag, second);
  EXPECT_EQ(groups.tag_of({1}), first);
  EXPECT_FALSE(groups.evict().has_value());
}

}  // namespace
}  // namespace dstune::group_directory_test
