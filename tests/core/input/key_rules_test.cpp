#include "core/input/key_rules.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::key_rules_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

constexpr KeyRule kInnerRules[] = {rules::boolean("flag")};
constexpr Section kInner{.rules = kInnerRules, .auto_is_default = true};
constexpr KeyRule kRules[] = {
    rules::integer("count", 1),
    rules::integer("few", 0, 3),
    rules::integer("pairs", 2).must_be_even(),
    rules::boolean("flag").or_null(),
    rules::only("fixed", true),
    rules::above("rate", 0),
    rules::fraction("share"),
    rules::fraction_below_one("beta"),
    rules::text("name"),
    rules::choice("color", "red|green").because(" (for now)"),
    rules::list("list"),
    rules::object("inner", kInner).also("nested"),
    rules::any("any"),
};
constexpr Section kOuter{.rules = kRules};
constexpr Section kOpen{.rules = kRules, .other_keys = true};

constexpr KeyRule kFewRules[] = {
    rules::boolean("enabled"),
    rules::boolean("comet"),
    rules::texts("names").or_auto(),
};
constexpr Section kIgnoring{
    .rules = kFewRules, .other_keys = true, .other_keys_warning = "is not known"};
constexpr Section kBits{.rules = kFewRules, .takes_bits = true};

struct Checked {
  std::string text;
  Faults faults;
};

Checked check(const char* text, const Section& section = kOuter) {
  Problems problems("config.json");
  const auto object = json::parse(text).as_object();
  const auto checked = check_section(object, section, "/s", problems);
  return {to_json_text(checked, 0), faults_in(problems)};
}

TEST(CheckSection, KeepsWhatIsRightInItsOrder) {
  const auto* const text =
      R"({"any":[{}],"name":"x","count":7,"flag":null,"fixed":true,"rate":1,"share":1.0,)"
      R"("beta":0,"color":"red","list":[],"pairs":4,"inner":{"flag":false}})";

  const auto checked = check(text);

  EXPECT_EQ(checked.text, text);
  EXPECT_EQ(checked.faults, Faults{});
}

TEST(CheckSection, StoresIntegralFloatsAsIntegers) {
  EXPECT_EQ(check(R"({"count":5e8,"few":2.0})").text, R"({"count":500000000,"few":2})");
}

TEST(CheckSection, RejectsEachWrongValueWithWhatIsAccepted) {
  const auto checked =
      check(R"({"count":0,"few":4,"pairs":3,"flag":1,"fixed":false,"rate":0,"share":1.5,"beta":1,)"
            R"("name":"","color":"gren","list":{},"inner":[]})");

  EXPECT_EQ(checked.text, "{}");
  EXPECT_EQ(checked.faults,
            (Faults{"/s/count  is 0; accepted: an integer >= 1",
                    "/s/few  is 4; accepted: an integer from 0 to 3",
                    "/s/pairs  is 3; accepted: an even integer >= 2",
                    "/s/flag  is 1; accepted: true or false or null",
                    "/s/fixed  is false; accepted: true", "/s/rate  is 0; accepted: a number > 0",
                    "/s/share  is 1.5; accepted: a number from 0 to 1",
                    "/s/beta  is 1; accepted: a number >= 0 and < 1",
                    "/s/name  is \"\"; accepted: a non-empty string",
                    "/s/color  is \"gren\"; did you mean \"green\"? accepted: \"red\", \"green\" "
                    "(for now)",
                    "/s/list  is an object; accepted: a list",
                    "/s/inner  is an empty list; accepted: an object"}));
}

TEST(CheckSection, RejectsIntegersOfOtherTypes) {
  for (const char* value : {"530841.6", "\"8\"", "true", "null", "1e300", "18446744073709551615"}) {
    const std::string text = std::string(R"({"count":)") + value + "}";

    EXPECT_EQ(check(text.c_str()).faults.size(), 1U) << value;
  }
}

TEST(CheckSection, RejectsUnknownKeysWithTheNearestKnownOne) {
  EXPECT_EQ(check(R"({"cuont":1,"zzzzzz":2})").faults,
            (Faults{"/s/cuont  is unknown; did you mean \"count\"?", "/s/zzzzzz  is unknown"}));
}

TEST(CheckSection, TellsMisspeltKeysFromOtherPeoplesIfTheyWouldBeIgnored) {
  Problems problems("config.json");

  const auto checked =
      check_section(json::parse(R"({"enabeld":true,"comment":"x","mine":1})").as_object(),
                    kIgnoring, "", problems);

  EXPECT_EQ(to_json_text(checked, 0), R"({"enabeld":true,"comment":"x","mine":1})");
  EXPECT_EQ(faults_in(problems),
            Faults{"/enabeld  is unknown and would have no effect; did you mean \"enabled\"?"});
  EXPECT_EQ(problems.warnings(),
            (Faults{"/comment is not known; did you mean \"comet\"?", "/mine is not known"}));
}

TEST(CheckSection, TakesBitsForBooleansWhereTheSectionDoes) {
  EXPECT_EQ(check(R"({"enabled":1,"names":"auto"})", kBits).text,
            R"({"enabled":true,"names":"auto"})");
  EXPECT_EQ(check(R"({"enabled":"yes","names":"a"})", kBits).faults,
            (Faults{"/s/enabled  is \"yes\"; accepted: true or false",
                    "/s/names  is \"a\"; accepted: a list of strings or \"auto\""}));
}

TEST(CheckSection, KeepsUnknownKeysWhereTheSectionIsOpen) {
  const auto checked = check(R"({"zzz":{"b":5e8,"a":"auto"},"count":1})", kOpen);

  EXPECT_EQ(checked.text, R"({"zzz":{"b":500000000.0,"a":"auto"},"count":1})");
  EXPECT_EQ(checked.faults, Faults{});
}

TEST(CheckSection, DropsAutoWhereItMeansTheDefault) {
  EXPECT_EQ(check(R"({"inner":{"flag":"auto"}})").text, R"({"inner":{}})");
  EXPECT_EQ(check(R"({"count":"auto"})").faults,
            Faults{"/s/count  is \"auto\"; accepted: an integer >= 1"});
}

TEST(CheckSection, WritesAnAliasUnderItsKey) {
  EXPECT_EQ(check(R"({"nested":{"flag":true}})").text, R"({"inner":{"flag":true}})");
}

TEST(CheckSection, RejectsAKeyTogetherWithItsAlias) {
  EXPECT_EQ(check(R"({"nested":{},"inner":{}})").faults,
            Faults{"/s/nested  is another name of \"inner\"; keep one of them"});
}

TEST(AsInteger, TakesOnlyIntegralNumbersOf64Bits) {
  EXPECT_EQ(as_integer(json::value(-3)), -3);
  EXPECT_EQ(as_integer(json::value(5e8)), 500000000);
  EXPECT_EQ(as_integer(json::value(0.5)), std::nullopt);
  EXPECT_EQ(as_integer(json::value(0x1p63)), std::nullopt);
  EXPECT_EQ(as_integer(json::value("5")), std::nullopt);
}

}  // namespace
}  // namespace dstune::key_rules_test
