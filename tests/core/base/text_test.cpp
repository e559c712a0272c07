#include "core/base/text.hpp"

#include <limits>

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

}  // namespace
}  // namespace dstune::text_test
