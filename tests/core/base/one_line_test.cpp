#include "core/base/one_line.hpp"

#include <gtest/gtest.h>

namespace dstune::one_line_test {
namespace {

TEST(Elided, LeavesWhatFits) { EXPECT_EQ(elided("z2_gas1_tmbspg4", 15), "z2_gas1_tmbspg4"); }

TEST(Elided, KeepsBothEnds) { EXPECT_EQ(elided("abcdefghijklmnop", 11), "abcd...mnop"); }

TEST(Elided, CutsNoNumber) {
  EXPECT_EQ(elided("wanted 1234.56 MiB more than 7890.12 MiB", 20), "wanted ... MiB");
  EXPECT_EQ(elided("step 123456789", 10), "step...");
}

TEST(Elided, CutsNoCharacter) {
  EXPECT_EQ(elided("aä\u00e4\u00e4\u00e4\u00e4bbbb", 10), "aä...bbb");
}

TEST(Elided, NeverGrowsBeyondTheRoom) {
  const std::string text = "no room for 1234567890 of \u00e4\u00f6\u00fc, 12.5 samples/s and more";
  for (std::size_t most = 8; most < text.size() + 2; ++most) {
    EXPECT_LE(elided(text, most).size(), most);
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

}  // namespace
}  // namespace dstune::one_line_test
