#include "core/base/text.hpp"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::text_test {

namespace {

using Words = std::vector<std::string>;

TEST(Concat, StreamsItsArguments) { EXPECT_EQ(concat("a", 1, 'c', 2.5), "a1c2.5"); }

TEST(Fixed, NeverUsesAnExponent) {
  EXPECT_EQ(fixed(1e21, 0), "1000000000000000000000");
  EXPECT_EQ(fixed(-0.126, 2), "-0.13");
  EXPECT_EQ(fixed(std::numeric_limits<double>::max(), 0).size(), 309U);
}

TEST(Trim, DropsBlanksAtBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split(",a,,b,", ','), (Words{"", "a", "", "b", ""}));
  EXPECT_EQ(split("", ','), Words{""});
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join({"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(DidYouMean, FindsOneMistakeOfEachKind) {
  const Words known = {"model", "backend"};

  EXPECT_EQ(did_you_mean("modle", known), "model");      // swapped
  EXPECT_EQ(did_you_mean("modl", known), "model");       // left out
  EXPECT_EQ(did_you_mean("modeel", known), "model");     // put in
  EXPECT_EQ(did_you_mean("backand", known), "backend");  // replaced
}

TEST(DidYouMean, PrefersTheNearest) {
  EXPECT_EQ(did_you_mean("abcdef", {"abxxef", "abcxef"}), "abcxef");
}

TEST(DidYouMean, SaysNothingIfNothingIsNear) {
  EXPECT_EQ(did_you_mean("seed", {"model", "backend"}), "");
  EXPECT_EQ(did_you_mean("x", {"dropout"}), "");
  EXPECT_EQ(did_you_mean("", {"a"}), "");
  EXPECT_EQ(did_you_mean("model", {}), "");
}

TEST(DidYouMean, NeverSaysTheSameWord) {
  EXPECT_EQ(did_you_mean("c_attn", {"c_attm", "c_attn"}), "");
}

TEST(DidYouMean, IgnoresWordsTooLongToBeAMistake) {
  const std::string paragraph(101, 'a');

  EXPECT_EQ(did_you_mean(paragraph, {paragraph}), "");
}

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

}  // namespace dstune::text_test
