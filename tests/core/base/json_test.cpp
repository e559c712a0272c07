#include "core/base/json.hpp"

#include <cstdint>
#include <cstdlib>
#include <limits>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace dstune::json_test {
namespace {

TEST(ToJsonText, WritesPlainNumbersWithoutExponent) {
  EXPECT_EQ(to_json_text(0.0003, 0), "0.0003");
  EXPECT_EQ(to_json_text(0.0, 0), "0.0");
  EXPECT_EQ(to_json_text(-2.5, 0), "-2.5");
  EXPECT_EQ(to_json_text(500000000.0, 0), "500000000.0");
}

TEST(ToJsonText, WritesVerySmallAndVeryLargeNumbersWithExponent) {
  EXPECT_EQ(to_json_text(1e-8, 0), "1e-08");
  EXPECT_EQ(to_json_text(5e-5, 0), "5e-05");
  EXPECT_EQ(to_json_text(1e22, 0), "1e+22");
}

TEST(ToJsonText, ReadsBackToTheSameBits) {
  for (const double number :
       {0.1, 1.0 / 3.0, 1e16, 123456789.123, 2.5e-310, std::numeric_limits<double>::max(),
        std::numeric_limits<double>::denorm_min()}) {
    const std::string text = to_json_text(number, 0);

    EXPECT_EQ(std::strtod(text.c_str(), nullptr), number) << text;
  }
}

TEST(ToJsonText, KeepsIntegersApartFromDoubles) {
  EXPECT_EQ(to_json_text(std::numeric_limits<std::int64_t>::min(), 0), "-9223372036854775808");
  EXPECT_EQ(to_json_text(std::numeric_limits<std::uint64_t>::max(), 0), "18446744073709551615");
  EXPECT_EQ(to_json_text(1.0, 0), "1.0");
}

TEST(ToJsonText, WritesNullForWhatJsonLacks) {
  EXPECT_EQ(to_json_text(std::numeric_limits<double>::quiet_NaN(), 0), "null");
  EXPECT_EQ(to_json_text(-std::numeric_limits<double>::infinity(), 0), "null");
}

TEST(ToJsonText, IndentsObjectsAndKeepsListsOnTheLine) {
  const auto value = json::parse(R"({"b":{"x":[1,2]},"a":{},"t":"q\"\n"})");

  const std::string text = to_json_text(value, 2);

  EXPECT_EQ(text, "{\n  \"b\": {\n    \"x\": [1, 2]\n  },\n  \"a\": {},\n  \"t\": \"q\\\"\\n\"\n}");
}

TEST(ToJsonText, WritesOneLineWithoutBlanksAtIndentZero) {
  const auto value = json::parse(R"({ "b": [1, {"c": null}], "a": true })");

  const std::string text = to_json_text(value, 0);

  EXPECT_EQ(text, R"({"b":[1,{"c":null}],"a":true})");
}

TEST(ToJsonText, EscapesWhatIsNotPlain) {
  EXPECT_EQ(to_json_text("a b~", 0), R"("a b~")");
  EXPECT_EQ(to_json_text("\"\\\n\x7f", 0), R"("\"\\\n\u007F")");
  EXPECT_EQ(to_json_text("\u00e4\u202e", 0), "\"\u00e4\\u202E\"");
}

TEST(SortedByKey, SortsObjectsInsideListsToo) {
  const auto value = json::parse(R"({"b":1,"a":[{"d":1,"c":2}]})");

  const auto sorted = sorted_by_key(value);

  EXPECT_EQ(to_json_text(sorted, 0), R"({"a":[{"c":2,"d":1}],"b":1})");
}

TEST(SortedJsonText, IsTheTextOfTheSorted) {
  const auto value =
      json::parse(R"({"b":{"z":1.5,"A":null,"a":"q\""},"\u00e4":{},"a":[{"d":1,"c":2},[]]})");

  EXPECT_EQ(sorted_json_text(value.get_object()), to_json_text(sorted_by_key(value), 0));
}

TEST(OwnCopy, OutlivesTheMemoryOfTheOriginal) {
  json::monotonic_resource memory;
  const json::object original({{"a", {{"b", "a text that is long enough to need memory"}}}},
                              &memory);

  const json::object copy = own_copy(original);

  EXPECT_EQ(copy, original);
  EXPECT_EQ(copy.storage().get(), json::storage_ptr().get());
  EXPECT_EQ(copy.at("a").as_object().at("b").storage().get(), json::storage_ptr().get());
}

}  // namespace
}  // namespace dstune::json_test
