#include "core/base/line_width.hpp"

#include <gtest/gtest.h>

namespace dstune::line_width_test {
namespace {

const std::string kUmlaut = "\xC3\xB6";  // two bytes, one character

TEST(ColumnsOf, AreCharactersNotBytes) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("g" + kUmlaut + kUmlaut + "d"), 4U);
}

TEST(CutInMiddle, KeepsTheBeginningAndTheEnd) {
  EXPECT_EQ(cut_in_middle("z3_tmbspg4_gas1", 15), "z3_tmbspg4_gas1");
  EXPECT_EQ(cut_in_middle("z3_tmbspg4_gas1", 14), "z3_tmb..._gas1");
  EXPECT_EQ(cut_in_middle("z3_tmbspg4_gas1", 9), "z3_...as1");
  EXPECT_EQ(cut_in_middle("z3_tmbspg4_gas1", 2), "z3");
}

TEST(CutInMiddle, CutsBetweenCharacters) {
  const std::string name = kUmlaut + kUmlaut + kUmlaut + "b" + kUmlaut + kUmlaut + kUmlaut;

  EXPECT_EQ(cut_in_middle(name, 5), kUmlaut + "..." + kUmlaut);
  EXPECT_EQ(cut_in_middle(name, 2), kUmlaut + kUmlaut);
}

TEST(Wrapped, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("Note: one two three.", 9), "Note: one\ntwo\nthree.");
  EXPECT_EQ(wrapped("short", 9), "short");
  EXPECT_EQ(wrapped("", 9), "");
  EXPECT_EQ(wrapped("a word_that_is_too_long b", 6), "a\nword_that_is_too_long\nb");
  EXPECT_EQ(wrapped("one two\nthree four", 8), "one two\nthree\nfour");
}

}  // namespace
}  // namespace dstune::line_width_test
