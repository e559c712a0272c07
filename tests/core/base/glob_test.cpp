#include "core/base/glob.hpp"

#include <gtest/gtest.h>

namespace dstune::glob_test {
namespace {

TEST(Glob, StandsForTheWholeText) {
  EXPECT_TRUE(matches_glob("lm_head.weight", "lm_head.weight"));
  EXPECT_FALSE(matches_glob("lm_head", "lm_head.weight"));
  EXPECT_FALSE(matches_glob("lm_head.weight", "lm_head"));
  EXPECT_TRUE(matches_glob("", ""));
}

TEST(Glob, StarsAreAnyTextDotsIncluded) {
  EXPECT_TRUE(matches_glob("*.bias", "model.layers.3.mlp.bias"));
  EXPECT_TRUE(matches_glob("model.*.mlp.*", "model.layers.3.mlp.up.weight"));
  EXPECT_TRUE(matches_glob("a*", "a"));
  EXPECT_TRUE(matches_glob("*a*b", "xaabab"));
  EXPECT_FALSE(matches_glob("*a*b", "xbaa"));
}

TEST(Glob, QuestionMarksAndBracketsAreOneCharacter) {
  EXPECT_TRUE(matches_glob("h.?.w", "h.3.w"));
  EXPECT_FALSE(matches_glob("h.?.w", "h.31.w"));
  EXPECT_TRUE(matches_glob("h.[2-4].[!a]", "h.3.w"));
  EXPECT_FALSE(matches_glob("h.[2-4].w", "h.5.w"));
  EXPECT_FALSE(matches_glob("h.3.[!w]", "h.3.w"));
  EXPECT_TRUE(matches_glob("[qk]_proj", "k_proj"));
  EXPECT_TRUE(matches_glob("[]]", "]"));
}

TEST(Glob, ABracketThatNothingClosesIsItself) { EXPECT_TRUE(matches_glob("a[b", "a[b")); }

}  // namespace
}  // namespace dstune::glob_test
