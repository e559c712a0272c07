#include "core/base/units.hpp"

#include <string>

#include <gtest/gtest.h>

namespace dstune::units_test {
namespace {

using namespace literals;

TEST(FormatBytes, ChoosesTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(4_GiB), "4.00 GiB");
  EXPECT_EQ(format_bytes(~Bytes{0}), "16384.00 PiB");
}

TEST(FormatBytes, TakesTheNextUnitWhereRoundingWouldReachIt) {
  EXPECT_EQ(format_bytes(1_MiB - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(1_MiB - 10_KiB), "1014.00 KiB");
}

TEST(ParseBytes, ReadsEveryUnitInAnyCase) {
  EXPECT_EQ(parse_bytes("4GiB"), 4_GiB);
  EXPECT_EQ(parse_bytes("512 MiB"), 512_MiB);
  EXPECT_EQ(parse_bytes("2k"), 2_KiB);
  EXPECT_EQ(parse_bytes("1.5 gb"), 1'500'000'000U);
  EXPECT_EQ(parse_bytes("1TB"), 1'000'000'000'000U);
  EXPECT_EQ(parse_bytes("1tib"), 1024_GiB);
  EXPECT_EQ(parse_bytes("8 B"), 8U);
}

TEST(ParseBytes, ReadsBareNumbersAsBytes) {
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes(" 4e9 "), 4'000'000'000U);
  EXPECT_EQ(parse_bytes(".5KiB"), 512U);
  EXPECT_EQ(parse_bytes("0"), 0U);
}

TEST(ParseBytes, RejectsWhatIsNoSize) {
  for (const char* text :
       {"", " ", "GiB", "-1", "-0", "+1", "0x10", "1e400", "nan", "inf", "4 GiB x", "1,5 GiB",
        "4GiBs", "9223372036854775808", "8388608TiB", "."}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(ParseBytes, RejectsTextAfterAZeroByte) {
  EXPECT_EQ(parse_bytes(std::string("4\0junk", 6)), std::nullopt);
}

TEST(ParseSeconds, ReadsEveryUnitAndSeveral) {
  EXPECT_EQ(parse_seconds("90s"), 90);
  EXPECT_EQ(parse_seconds("20min"), 1200);
  EXPECT_EQ(parse_seconds(" 2 H "), 7200);
  EXPECT_EQ(parse_seconds("1.5h"), 5400);
  EXPECT_EQ(parse_seconds("1d"), 86400);
  EXPECT_EQ(parse_seconds("1h 30min"), 5400);
  EXPECT_EQ(parse_seconds("1h30min5s"), 5405);
  EXPECT_EQ(parse_seconds("0s"), 0);
}

TEST(ParseSeconds, RejectsWhatIsNoTime) {
  for (const char* text : {"", " ", "20", "min", "-1s", "-0s", "20m", "20minutes", "1h 30", "1,5h",
                           "nan s", "1e400s", "1e7d", "1h;", "+1s"}) {
    EXPECT_EQ(parse_seconds(text), std::nullopt) << text;
  }
}

TEST(FormatSeconds, ChoosesTheUnit) {
  EXPECT_EQ(format_seconds(850e-6), "850 us");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(4.56), "4.56 s");
  EXPECT_EQ(format_seconds(200), "3 min 20 s");
}

TEST(FormatSeconds, TakesTheNextUnitWhereRoundingWouldReachIt) {
  EXPECT_EQ(format_seconds(999.7e-6), "1.0 ms");
  EXPECT_EQ(format_seconds(0.99996), "1.00 s");
}

}  // namespace
}  // namespace dstune::units_test
