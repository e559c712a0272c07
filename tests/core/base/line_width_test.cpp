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

TEST(CutInMiddle, CutsNoNumber) {
  EXPECT_EQ(cut_in_middle("wanted 1234.56 MiB more than 7890.12 MiB", 20), "wanted ... MiB");
  EXPECT_EQ(cut_in_middle("step 123456789", 10), "step...");
}

TEST(CutInMiddle, NeverGrowsBeyondTheRoom) {
  const std::string text = "no room for 1234567890 of \u00e4\u00f6\u00fc, 12.5 samples/s and more";
  for (std::size_t most = 1; most < text.size() + 2; ++most) {
    EXPECT_LE(columns_of(cut_in_middle(text, most)), most);
  }
}

TEST(InLines, CutsNoPart) {
  const std::string half(49, 'x');

  EXPECT_EQ(in_lines({"a", "b"}, "; "), (std::vector<std::string>{"a; b"}));
  EXPECT_EQ(in_lines({half, half, "y"}, "; "),
            (std::vector<std::string>{half + "; " + half, "  y"}));
  EXPECT_EQ(in_lines({"a", std::string(120, 'z'), "b"}, ", "),
            (std::vector<std::string>{"a", "  " + std::string(120, 'z'), "  b"}));
  EXPECT_TRUE(in_lines({}, ", ").empty());
}

TEST(Wrapped, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("Note: one two three.", 9), "Note: one\ntwo\nthree.");
  EXPECT_EQ(wrapped("short", 9), "short");
  EXPECT_EQ(wrapped("", 9), "");
  EXPECT_EQ(wrapped("a word_that_is_too_long b", 6), "a\nword_that_is_too_long\nb");
  EXPECT_EQ(wrapped("one two\nthree four", 8), "one two\nthree\nfour");
  EXPECT_EQ(wrapped("  one two three", 9, "  "), "  one two\n  three");
  EXPECT_EQ(wrapped("one two three", 7, "  "), "one two\n  three");
  EXPECT_EQ(wrapped("   ", 2), "   ");
  EXPECT_EQ(wrapped("at most 10 % longer, 63.6 MiB", 9), "at most\n10 %\nlonger,\n63.6 MiB");
  EXPECT_EQ(wrapped("rank 5. s", 7), "rank 5.\ns");
}

}  // namespace
}  // namespace dstune::line_width_test
