#include "core/train/zero/layout/shard_layout.hpp"

#include <gtest/gtest.h>

namespace dstune::shard_layout_test {
namespace {

using Sizes = std::vector<std::size_t>;

// Tensors in each sub-group of three of 40, 10 and 30 elements, on two ranks.
Sizes sub_groups_of(std::int64_t sub_group_size) {
  ModelParameters parameters;
  for (const std::int64_t numel : {40, 10, 30}) parameters.tensors.push_back({"t", {numel}, true});
  const ShardLayout layout({{{0, 1, 2}, 0.0}}, parameters, 2, sub_group_size);
  Sizes sizes;
  for (const SubGroup& group : layout.sub_groups()) sizes.push_back(group.tensors.size());
  return sizes;
}

TEST(ShardLayout, ClosesASubGroupOnceItsShardsReachTheSize) {
  EXPECT_EQ(sub_groups_of(1000), Sizes{3});
  EXPECT_EQ(sub_groups_of(25), (Sizes{2, 1}));
  EXPECT_EQ(sub_groups_of(20), (Sizes{1, 2}));
}

TEST(ShardLayout, KnowsItsLargestSubGroup) {
  ModelParameters parameters;
  for (const std::int64_t numel : {10, 40, 31}) parameters.tensors.push_back({"t", {numel}, true});

  EXPECT_EQ(ShardLayout({{{0, 1, 2}, 0.0}}, parameters, 2, 20).largest_sub_group(), 5 + 20);
  EXPECT_EQ(ShardLayout({}, parameters, 2, 20).largest_sub_group(), 0);
}

TEST(ShardLayout, MakesEveryTensorASubGroupIfTheSizeIsZero) {
  EXPECT_EQ(sub_groups_of(0), (Sizes{1, 1, 1}));
}

}  // namespace
}  // namespace dstune::shard_layout_test
