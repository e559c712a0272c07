#include "core/base/json_parser.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

namespace dstune::json_parser_test {
namespace {

TEST(ParseJson, EveryDoubleReadsBackToTheSameBits) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(-10, 10);
  std::uniform_int_distribution<int> exponent(-1000, 1000);

  for (int i = 0; i < 2000; ++i) {
    const double number = std::ldexp(mantissa(random), exponent(random));

    EXPECT_EQ(parse_json(to_json_text(number, 0)).as_double(), number);
  }
}

TEST(ParseJson, KeepsTheKindOfANumber) {
  EXPECT_TRUE(parse_json("3").is_int64());
  EXPECT_TRUE(parse_json("3.0").is_double());
  EXPECT_EQ(parse_json("18446744073709551615").as_uint64(),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseJson, ReadsWhatWasWritten) {
  const json::value value = {{"a", {1, 2.5, "x\n\"y\"", nullptr, true}}, {"b", json::object{}}};

  EXPECT_EQ(parse_json(to_json_text(value, 0)), value);
  EXPECT_EQ(parse_json(to_json_text(value, 2)), value);
}

TEST(ParseJson, RejectsWhatIsNoSingleValue) {
  for (const char* text : {"", "{", "{\"a\":1,}", "1 2", "nul", "// x\n1", "{\"a\":01}"}) {
    EXPECT_THROW(parse_json(text), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace dstune::json_parser_test
