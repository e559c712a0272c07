#include "core/device/known_values.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::known_values_test {
namespace {

// A rank that is left out, or two that are exchanged, must be seen.
TEST(KnownValues, DifferByRankAndPlace) {
  for (int rank = 0; rank < 8; ++rank) {
    for (int other = 0; other < rank; ++other)
      EXPECT_NE(known_value(rank, 5), known_value(other, 5));
    EXPECT_NE(known_value(rank, 0), known_value(rank, 1));
  }
}

TEST(KnownValues, SumOverRanks) {
  EXPECT_EQ(known_sum(1, 0), -11);
  EXPECT_EQ(known_sum(2, 0), -11 + 2);
  EXPECT_EQ(known_sum(3, 1), -4 + 9 - 1);
}

TEST(FirstWrong, IsNothingWhereAllIsRight) {
  const std::vector<float> values = {known_sum(4, 0), known_sum(4, 1)};

  EXPECT_FALSE(first_wrong(values, [](std::size_t i) { return known_sum(4, i); }));
  EXPECT_FALSE(first_wrong({}, [](std::size_t) { return 1.0F; }));
}

TEST(FirstWrong, SaysWhereAndWhat) {
  const std::vector<float> values = {1, 1, 3, 4};

  const auto wrong = first_wrong(values, [](std::size_t) { return 1.0F; });

  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->index, 2U);
  EXPECT_EQ(wrong->actual, 3);
  EXPECT_EQ(wrong->expected, 1);
}

TEST(FirstWrong, SeesNaN) {
  const std::vector<float> values = {NAN};

  EXPECT_TRUE(first_wrong(values, [](std::size_t) { return NAN; }));
}

}  // namespace
}  // namespace dstune::known_values_test
