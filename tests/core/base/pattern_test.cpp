#include "core/base/pattern.hpp"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace dstune::pattern_test {

namespace {

bool matches(const char* pattern, const char* text) { return Pattern(pattern).matches(text); }

bool is_taken(const std::string& pattern) {
  try {
    const Pattern tried(pattern);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

TEST(Pattern, StandsForWholeTexts) {
  EXPECT_TRUE(matches(R"(.*\.(q|v)_proj)", "model.layers.3.self_attn.q_proj"));
  EXPECT_FALSE(matches("q_proj", "model.layers.3.self_attn.q_proj"));
  EXPECT_TRUE(matches("q|q_proj", "q_proj"));  // whatever alternative comes first
  EXPECT_TRUE(matches(R"((?P<layer>\d+)\.mlp)", "12.mlp"));
  EXPECT_FALSE(matches("Q", "q"));
  EXPECT_TRUE(matches("(?i)Q", "q"));
}

TEST(Pattern, RefusesWhatItCannotDoAsPythonDoes) {
  for (const char* pattern : {"c_(attn", "(?=a)a", "(?<!a)b", R"((a)\1)", R"(a\Z)", "(?x) a", "*",
                              "a{,3}", "((a{1000}){1000}){1000}"}) {
    EXPECT_FALSE(is_taken(pattern)) << pattern;
  }
  EXPECT_TRUE(is_taken(R"(a\{,3})"));
  EXPECT_TRUE(is_taken("a{0,3}"));
}

// A backtracking matcher tries 2^60 ways, and its recursion is as deep as the text is long.
TEST(Pattern, TakesTimeThatIsLinearInTheText) {
  EXPECT_FALSE(Pattern("(a*)*b").matches(std::string(1'000'000, 'a')));
  EXPECT_FALSE(Pattern("(a|aa)+b").matches(std::string(60, 'a')));
  EXPECT_TRUE(Pattern("(.*)*").matches(std::string(1'000'000, 'a')));
}

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

}  // namespace dstune::pattern_test
