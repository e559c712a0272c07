#include "core/input/read_json.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::read_json_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;
using testing_support::TemporaryDirectory;
using testing_support::write_file;

std::string read_back(std::string_view text) {
  Problems problems("config.json");
  const auto value = parse_config_json(text, "", problems);
  problems.throw_if_any();
  return to_json_text(*value, 0);
}

Faults faults_of_text(std::string_view text, const JsonLimits& limits = {}) {
  Problems problems("config.json");
  parse_config_json(text, "", problems, limits);
  return faults_in(problems);
}

Faults faults_of_file(const std::string& path, const JsonLimits& limits = {}) {
  Problems problems(path);
  read_json_file(path, "", problems, limits);
  return faults_in(problems);
}

TEST(ParseConfigJson, TakesCommentsAndTrailingCommas) {
  const auto* text = "// first\n{\"a\": [1, 2,], /* second */ \"b\": {\"c\": null,},}\n// last";

  EXPECT_EQ(read_back(text), R"({"a":[1,2],"b":{"c":null}})");
}

TEST(ParseConfigJson, TakesAByteOrderMark) { EXPECT_EQ(read_back("\xEF\xBB\xBF{}"), "{}"); }

TEST(ParseConfigJson, KeepsOrderEscapesAndBothKindsOfNumber) {
  const auto* text = R"({"z":1,"a":1.0,"k\u0065y":"\u00e4\"","big":18446744073709551615})";

  EXPECT_EQ(read_back(text),
            "{\"z\":1,\"a\":1.0,\"key\":\"\xC3\xA4\\\"\",\"big\":18446744073709551615}");
}

TEST(ParseConfigJson, ReadsTheNearestDouble) {
  Problems problems("config.json");

  const auto value =
      parse_config_json("[0.0003, 5e-5, 1.7976931348623157e308, 1e-400]", "", problems);

  ASSERT_TRUE(value);
  EXPECT_EQ(value->at(0).as_double(), 0.0003);
  EXPECT_EQ(value->at(1).as_double(), 5e-5);
  EXPECT_EQ(value->at(2).as_double(), std::numeric_limits<double>::max());
  EXPECT_EQ(value->at(3).as_double(), 0);
}

TEST(ParseConfigJson, FindsEveryDuplicateKeyWithItsPlace) {
  const auto* text = R"({"a": 1, "b": [{}, {"c": 1, "d": 2, "\u0063": 3}], "a": 2})";

  EXPECT_EQ(faults_of_text(text), (Faults{"/b/1/c  is given more than once; keep one of them",
                                          "/a  is given more than once; keep one of them"}));
}

TEST(ParseConfigJson, AllowsTheSameKeyInDifferentObjects) {
  EXPECT_EQ(faults_of_text(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]})"), Faults{});
}

TEST(ParseConfigJson, RejectsNumbersTooLargeForADouble) {
  EXPECT_EQ(faults_of_text(R"({"a": [1, 1e999]})"),
            Faults{"/a/1  is 1e999, too large for a number"});
}

TEST(ParseConfigJson, HandsOnNoNumberThatNoTextCanHold) {
  Problems problems("");

  EXPECT_EQ(parse_config_json("[1e999]", "", problems), (json::array{nullptr}));
}

struct BadText {
  const char* name;
  std::string text;
  std::string fault;
};

class ParseConfigJsonRejects : public testing::TestWithParam<BadText> {};

TEST_P(ParseConfigJsonRejects, WithPlaceAndReason) {
  EXPECT_EQ(faults_of_text(GetParam().text), Faults{GetParam().fault});
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, ParseConfigJsonRejects,
    testing::Values(
        BadText{"Empty", "", "file  is empty; accepted: a JSON object"},
        BadText{"Blank", " \n\t", "file  is empty; accepted: a JSON object"},
        BadText{"NaN", "{\"a\":\n  NaN}",
                "line 2, column 3  has NaN, which is not JSON; accepted: finite numbers"},
        BadText{"NanInSmallLetters", "[nan]",
                "line 1, column 2  has nan, which is not JSON; accepted: finite numbers"},
        BadText{"Infinity", "[1, -Infinity]",
                "line 1, column 5  has -Infinity, which is not JSON; accepted: finite numbers"},
        BadText{"Python", "{\"a\": True}",
                "line 1, column 7  has True, which is Python; JSON writes true, false, null"},
        BadText{"BareWord", "{\"a\": yes}",
                "line 1, column 7  has \"yes\" where JSON does not allow it"},
        BadText{"BareKey", "{a: 1}", "line 1, column 2  has \"a\" where JSON does not allow it"},
        BadText{"SingleQuotes", "{'a': 1}",
                "line 1, column 2  has a single quote; JSON strings are written in double quotes"},
        BadText{"OpenBracket", "{\"a\": [1, 2",
                "line 1, column 12  ends too early: a bracket or quote is still open"},
        BadText{"OpenString", "{\"a",
                "line 1, column 4  ends too early: a bracket or quote is still open"},
        BadText{"OpenWord", "{\n\"a\": tru",
                "line 2, column 9  ends too early: a bracket or quote is still open"},
        BadText{"OpenBracketBehindANewline", "{\"a\": {\"b\": 1},\n",
                "line 2, column 1  ends too early: a bracket or quote is still open"},
        BadText{"PathWithoutQuotes", "{\"a/b\": 1, // c/d\n\"dir\": /my/dir, /* e/f */ \"b\": 1}",
                "line 2, column 8  has \"/my/dir\" where JSON does not allow it; strings are "
                "written in double quotes"},
        BadText{"LoneSlash", "[1 /e]",
                "line 1, column 4  has \"/e\" where JSON does not allow it; strings are written in "
                "double quotes"},
        BadText{"WindowsPath", R"({"a": "C:\data"})",
                R"(line 1, column 10  has "\d" in a string; a backslash is written \\)"},
        BadText{"MissingQuote", "{\"a\": \"x,\n \"b\": 2}",
                "line 1, column 7  has a string that is not closed on its line: a quote is missing "
                "after \"x,\""},
        BadText{"TabInAString", "[\"a\tb\"]",
                "line 1, column 4  has a control character in a string; a tab is written \\t"},
        BadText{"HalfASurrogate", R"({"a": "x\ud800"})",
                R"(line 1, column 15  has half of a surrogate pair in a string)"},
        BadText{"TypographicQuotes",
                "{\xE2\x80\x9C"
                "a\": 1}",
                "line 1, column 2  has a character outside a string"},
        BadText{"PlaceholderBeforeABracket", R"({"lr": @LR@})",
                "line 1, column 8  has \"@LR@\" where JSON does not allow it; it looks like a "
                "placeholder of a template: fill it in"},
        BadText{"MissingComma", "{\"a\": 1\n \"b\": 2}",
                "line 2, column 2  a comma is missing before \"b\""},
        BadText{"MissingCommaOnOneLine", R"({"a":1 "b":2})",
                "line 1, column 8  a comma is missing before \"b\""},
        BadText{"MissingCommaInAList", "[1, [2] [3]]",
                "line 1, column 9  a comma is missing before \"[\""},
        BadText{"MissingCommaBehindAComment", "[1 /* , */ 2]",
                "line 1, column 12  a comma is missing before \"2\""},
        BadText{"MissingColon", R"({"a" "b"})",
                "line 1, column 6  a colon is missing before \"b\""},
        BadText{"TwoCommas", "[1,, 2]", "line 1, column 4  has \",\" where JSON does not allow it"},
        BadText{"BrokenLiteral", "[1, trxe]",
                "line 1, column 5  has \"trxe\" where JSON does not allow it"},
        BadText{"Placeholder", R"({"train_batch_size": GBSIZE})",
                "line 1, column 22  has \"GBSIZE\" where JSON does not allow it; it looks like a "
                "placeholder of a template: fill it in"},
        BadText{"PlaceholderOfAShell", R"({"lr": ${LR}, "a": 1})",
                "line 1, column 8  has \"${LR}\" where JSON does not allow it; it looks like a "
                "placeholder of a template: fill it in"},
        BadText{"PlaceholderOfJinja", R"({"lr": {{lr}}})",
                "line 1, column 8  has \"{{lr}}\" where JSON does not allow it; it looks like a "
                "placeholder of a template: fill it in"},
        BadText{"Utf16WithItsMark", std::string("\xFF\xFE{\0}\0", 6),
                "file  is UTF-16; save it as UTF-8"},
        BadText{"Utf16BigEndian", std::string("\0{\0}", 4), "file  is UTF-16; save it as UTF-8"},
        BadText{"TrailingGarbage", "{}\n}",
                "line 2, column 1  has more text after the end of the JSON value"},
        BadText{"TwoValues", "{} {}",
                "line 1, column 4  has more text after the end of the JSON value"},
        BadText{"InvalidUtf8", "{\"a\": \"\xFF\"}",
                "line 1, column 8  has bytes that are not UTF-8"},
        BadText{"ZeroBytes", std::string(100, '\0'),
                "line 1, column 1  has a zero byte: this is not a text file"},
        BadText{"Binary",
                "\x7F"
                "ELF\x02\x01",
                "line 1, column 1  has \"?\" where JSON does not allow it"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ParseConfigJson, StopsAtTheDepthLimit) {
  const JsonLimits limits{.max_depth = 3};

  EXPECT_EQ(faults_of_text("[[[]]]", limits), Faults{});
  EXPECT_EQ(faults_of_text("[[[[]]]]", limits),
            Faults{"line 1, column 4  is nested deeper than 3 levels"});
  EXPECT_EQ(faults_of_text(std::string(100'000, '[')),
            Faults{"line 1, column 65  is nested deeper than 64 levels"});
}

TEST(ReadJsonFile, NamesFilesThatCannotBeRead) {
  const TemporaryDirectory directory;

  EXPECT_EQ(faults_of_file(directory.path()), Faults{"file  is a directory"});
  EXPECT_EQ(faults_of_file(directory / "absent.json"),
            Faults{"file  cannot be read: No such file or directory"});
}

TEST(ReadJsonFile, StopsAtTheSizeLimit) {
  const TemporaryDirectory directory;
  const std::string path = directory / "big.json";
  write_file(path, "\"" + std::string((std::size_t{3} << 20U) - 2, 'x') + "\"");

  EXPECT_EQ(faults_of_file(path, {.max_bytes = std::size_t{3} << 20U}), Faults{});
  EXPECT_EQ(faults_of_file(path, {.max_bytes = (std::size_t{3} << 20U) - 1}),
            Faults{"file  is longer than 3.00 MiB: this is not a configuration"});
}

TEST(ReadJsonFile, TakesAMebibyteByDefault) {
  const TemporaryDirectory directory;
  const std::size_t mebibyte = std::size_t{1} << 20U;
  write_file(directory / "a.json", "\"" + std::string(mebibyte - 2, 'x') + "\"");
  write_file(directory / "b.json", "\"" + std::string(mebibyte - 1, 'x') + "\"");

  EXPECT_EQ(faults_of_file(directory / "a.json"), Faults{});
  EXPECT_EQ(faults_of_file(directory / "b.json"),
            Faults{"file  is longer than 1.00 MiB: this is not a configuration"});
}

TEST(ReadJsonFile, ReadsFilesLongerThanOneChunk) {
  const TemporaryDirectory directory;
  write_file(directory / "a.json", "[\"" + std::string(200'000, 'x') + "\", 1]");
  Problems problems("a.json");

  const auto value = read_json_file(directory / "a.json", "", problems);

  ASSERT_TRUE(value);
  EXPECT_EQ(value->at(0).as_string().size(), 200'000U);
  EXPECT_EQ(value->at(1), 1);
}

}  // namespace
}  // namespace dstune::read_json_test
