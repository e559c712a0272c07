#include "core/base/printable.hpp"

#include <gtest/gtest.h>

namespace dstune::printable_test {
namespace {

TEST(Printable, LeavesTextAlone) {
  const char* text = "a b-c/\"\\ \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80";

  EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\x1B[2Jb\nc\td\x7F"), "a\\x1B[2Jb\\x0Ac\\x09d\\x7F");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xC2\\x9B") << "a control sequence introducer in UTF-8";
}

TEST(Printable, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xFFx\xC3"), "\\xFFx\\xC3");
  EXPECT_EQ(printable("\xC0\xAF"), "\\xC0\\xAF") << "a slash in more bytes than it needs";
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xED\\xA0\\x80") << "half of a UTF-16 pair";
}

TEST(Printable, EscapesWhatTurnsTheDirectionOfReading) {
  EXPECT_EQ(printable("a\u202Eb\u2066\u200F\u2028"),
            "a\\xE2\\x80\\xAEb\\xE2\\x81\\xA6\\xE2\\x80\\x8F\\xE2\\x80\\xA8");
  EXPECT_EQ(printable("\u2010\u200D"), "\u2010\u200D");
}

TEST(PrintableJson, EscapesAsJsonDoes) {
  EXPECT_EQ(printable_json("\"a\u202E\u009B\x7F\u20AC\""), "\"a\\u202E\\u009B\\u007F\u20AC\"");
}

TEST(PrintableLines, KeepsLineBreaksOnly) { EXPECT_EQ(printable_lines("a\nb\r"), "a\nb\\x0D"); }

}  // namespace
}  // namespace dstune::printable_test
