#include "core/base/edit_distance.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::edit_distance_test {
namespace {

TEST(EditDistance, CountsEachKindOfSlip) {
  EXPECT_EQ(edit_distance("stage", "stage"), 0U);
  EXPECT_EQ(edit_distance("stage", "stge"), 1U);    // left out
  EXPECT_EQ(edit_distance("stage", "staage"), 1U);  // put in
  EXPECT_EQ(edit_distance("stage", "stake"), 1U);   // replaced
  EXPECT_EQ(edit_distance("stage", "satge"), 1U);   // swapped
  EXPECT_EQ(edit_distance("", "stage"), 5U);
  EXPECT_EQ(edit_distance("stage", ""), 5U);
}

TEST(EditDistance, EditsNoPieceTwice) { EXPECT_EQ(edit_distance("ca", "abc"), 3U); }

TEST(EditDistance, IsExactUpToItsBoundAndAboveItBeyond) {
  std::vector<std::string> words = {""};
  for (std::size_t i = 0; i < 40; ++i) {  // all of up to four of three letters
    for (const char letter : {'a', 'b', 'c'}) words.push_back(words[i] + letter);
  }

  for (const auto& a : words) {
    for (const auto& b : words) {
      const auto exact = edit_distance(a, b);
      for (std::size_t most = 0; most < 5; ++most) {
        const auto bounded = edit_distance(a, b, most);

        ASSERT_EQ(bounded > most, exact > most) << a << ' ' << b << ' ' << most;
        ASSERT_TRUE(exact > most || bounded == exact) << a << ' ' << b << ' ' << most;
      }
    }
  }
}

TEST(EditDistance, GivesUpBeyondItsBound) {
  EXPECT_LT(edit_distance("aaaaaaaa", "bbbbbbbb", 1), 8U);
  EXPECT_EQ(edit_distance("aaaaaaaa", "bbbbbbbb"), 8U);
}

}  // namespace
}  // namespace dstune::edit_distance_test
