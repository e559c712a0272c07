#include "core/input/problems.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::problems_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

TEST(Problems, ThrowsNothingWithoutAProblem) {
  const Problems problems("config.json");

  EXPECT_TRUE(problems.empty());
  EXPECT_NO_THROW(problems.throw_if_any());
}

TEST(Problems, ThrowsAllInOrder) {
  Problems problems("config.json");
  problems.add("/a", "is 1");
  problems.add("/b", "is 2");

  EXPECT_EQ(faults_in(problems), (Faults{"/a  is 1", "/b  is 2"}));
}

TEST(Problems, FoldsWarningsOfTheSameParentAndText) {
  Problems problems("config.json");
  problems.warn("/a/x", "is odd");
  problems.warn("/b", "is odd");
  problems.warn("/a/y", "is odd");
  problems.warn("/a/z", "is even");

  EXPECT_EQ(problems.warnings(),
            (Faults{"/a/* is odd (2 keys: x, y)", "/b is odd", "/a/z is even"}));
  EXPECT_TRUE(problems.empty());
}

TEST(Problems, NamesTheFirstThreeOfFoldedKeys) {
  Problems problems("config.json");
  for (const char* key : {"one", "two", "three", "four"}) {
    problems.warn(std::string("/") + key, "is odd");
    problems.warn(std::string("/") + key + std::string(50, 'x'), "is long");
  }

  const auto warnings = problems.warnings();

  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0], "/* is odd (4 keys: one, two, three, ...)");
  EXPECT_LT(warnings[1].size(), 180U);
}

TEST(Problems, CountsWarningsBeyondTwenty) {
  Problems problems("config.json");
  for (int i = 0; i < 23; ++i) problems.warn("/a/x", std::string("is odd ") + std::to_string(i));

  const auto warnings = problems.warnings();

  ASSERT_EQ(warnings.size(), 21U);
  EXPECT_EQ(warnings.back(), "... and 3 more");
}

TEST(Problems, CountsWhatIsBeyondFifty) {
  Problems problems("config.json");
  for (int i = 0; i < 53; ++i) problems.add("/a", "is wrong");

  const auto faults = faults_in(problems);

  ASSERT_EQ(faults.size(), 51U);
  EXPECT_EQ(faults.back(), "...  and 3 more");
  EXPECT_EQ(problems.count(), 53U);
}

TEST(Problems, AddsThoseOfAFileUnderItsName) {
  Problems file("gpt2.json");
  file.add("/n_embd", "is 0");
  file.add("line 3, column 5", "has NaN");
  Problems problems("config.json");

  problems.add_all(file);

  EXPECT_EQ(faults_in(problems),
            (Faults{"gpt2.json#/n_embd  is 0", "gpt2.json: line 3, column 5  has NaN"}));
}

TEST(Describe, ShowsScalarsAndNamesTheRest) {
  const auto described = [](const char* text) { return describe(json::parse(text)); };

  EXPECT_EQ(described("null"), "null");
  EXPECT_EQ(described("-1"), "-1");
  EXPECT_EQ(described("\"a\""), "\"a\"");
  EXPECT_EQ(described("[]"), "an empty list");
  EXPECT_EQ(described("[1]"), "a list");
  EXPECT_EQ(described("{}"), "an object");
}

TEST(InQuotes, CutsLongTextsBetweenCharacters) {
  const std::string text = std::string(39, 'a') + "\xC3\xA4" + "bbb";

  EXPECT_EQ(in_quotes(text), "\"" + std::string(39, 'a') + "...\"");
}

TEST(InQuotes, HidesControlCharacters) { EXPECT_EQ(in_quotes("a\n\x1b[1m"), "\"a??[1m\""); }

TEST(Child, EscapesAsJsonPointersDo) {
  EXPECT_EQ(child("/a", "b/c~d"), "/a/b~1c~0d");
  EXPECT_EQ(child("", std::size_t{7}), "/7");
}

}  // namespace
}  // namespace dstune::problems_test
