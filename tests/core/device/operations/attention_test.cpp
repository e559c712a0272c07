#include "core/device/operations/attention.hpp"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace dstune::attention_test {
namespace {

TEST(ScoreDropout, EveryScoreHasBitsOfItsOwn) {
  constexpr std::int64_t kSequence = 37;
  const ScoreGroups groups(kSequence);
  std::set<std::pair<std::uint64_t, unsigned>> seen;

  for (std::int64_t query = 0; query < kSequence; ++query) {
    for (std::int64_t key = 0; key < kSequence; ++key) {
      seen.emplace(groups.index(query, key), score_place(query, key));
    }
  }

  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kSequence * kSequence));
}

TEST(ScoreDropout, ScoresThatDifferByEightInATileShareAGroup) {
  const ScoreGroups groups(64);

  EXPECT_EQ(groups.index(19, 37), groups.index(27, 45));
  EXPECT_EQ(groups.index(19, 37), groups.index(19, 45));
  EXPECT_NE(groups.index(19, 37), groups.index(35, 37));
  EXPECT_EQ(groups.index(19, 38), groups.index(19, 37) + 1);
  EXPECT_EQ(groups.index(20, 37), groups.index(19, 37) + groups.per_row);
}

TEST(ScoreDropout, SixteenBitsDecideOverEach) {
  constexpr std::uint64_t kBits = 0x4000'3fff'8000'0000U;
  const std::uint32_t threshold = score_threshold(0.25);

  EXPECT_FALSE(is_score_kept(kBits, 0, threshold));
  EXPECT_TRUE(is_score_kept(kBits, 1, threshold));
  EXPECT_FALSE(is_score_kept(kBits, 2, threshold));
  EXPECT_TRUE(is_score_kept(kBits, 3, threshold));
}

}  // namespace
}  // namespace dstune::attention_test
