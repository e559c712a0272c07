#include "core/input/read_yaml.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::read_yaml_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

json::value value_of(std::string_view text) {
  Problems problems("train.yaml");
  const auto value = parse_config_yaml(text, problems);
  EXPECT_EQ(faults_in(problems), Faults()) << text;
  return value.value_or("no YAML");
}

Faults faults_of_text(std::string_view text, const JsonLimits& limits = {}) {
  Problems problems("train.yaml");
  parse_config_yaml(text, problems, limits);
  return faults_in(problems);
}

TEST(ReadYaml, PlainScalarsHaveTheTypeThatTheyLookLike) {
  EXPECT_EQ(value_of("[true, No, on, ~, null, 8, -3, +2, 1.5, 1e-4, .5]"),
            (json::array{true, false, true, nullptr, nullptr, 8, -3, 2, 1.5, 1e-4, 0.5}));
  EXPECT_EQ(value_of("[fast, 8x, nan, -, +, inf, 1:30, v1.2.3]"),
            (json::array{"fast", "8x", "nan", "-", "+", "inf", "1:30", "v1.2.3"}));
}

// As yaml.safe_load() of PyYAML 6.0 has them.
TEST(ReadYaml, IntegersMayHaveABaseAndUnderscores) {
  EXPECT_EQ(value_of("[0x40, -0x10, 0b101, 010, -010, 0_7, 1_000, +1_0, 1_, 0, -0]"),
            (json::array{64, -16, 5, 8, -8, 7, 1000, 10, 1, 0, 0}));
  EXPECT_EQ(value_of("[1_000.5, 012.5, 1., -9223372036854775808]"),
            (json::array{1000.5, 12.5, 1.0, std::numeric_limits<std::int64_t>::min()}));
  EXPECT_EQ(value_of("[08, -08, 0x, 0b, 0xg, 0x-5, +-5, _1, -_5, ._5, 1_0e5, 0o17]"),
            (json::array{"08", "-08", "0x", "0b", "0xg", "0x-5", "+-5", "_1", "-_5", "._5", "1_0e5",
                         "0o17"}));
}

TEST(ReadYaml, QuotedScalarsAreTexts) {
  EXPECT_EQ(value_of("['no', \"8\", '']"), (json::array{"no", "8", ""}));
}

TEST(ReadYaml, MappingsAndListsNest) {
  EXPECT_EQ(value_of("a:\n  b: 1\n  c:\n  - x\n  - {d: 2}\ne:\n"),
            (json::object{{"a", {{"b", 1}, {"c", json::array{"x", json::object{{"d", 2}}}}}},
                          {"e", nullptr}}));
  EXPECT_EQ(value_of(""), nullptr);
  EXPECT_EQ(value_of("# nothing\n"), nullptr);
}

TEST(ReadYaml, FaultsHaveTheirPlaces) {
  EXPECT_EQ(faults_of_text("a: 1\na: 2\n"), Faults{"line 2, column 4  has the key \"a\" again"});
  ASSERT_EQ(faults_of_text("a: [1, 2\n").size(), 1U);
  EXPECT_EQ(faults_of_text("a: [1, 2\n")[0].rfind("line ", 0), 0U);
  EXPECT_EQ(faults_of_text("? [1]\n: 2\n"),
            Faults{"line 1, column 3  has a key that is not a string"});
  EXPECT_EQ(faults_of_text("a: 1\n---\nb: 2\n"),
            Faults{"file  has more than one YAML document; accepted: one"});
}

TEST(ReadYaml, AnchorsAliasesAndTagsAreRefused) {
  EXPECT_EQ(faults_of_text("a: &x [1]\nb: *x\n"),
            Faults{"line 1, column 4  has an anchor; accepted: the value without it"});
  ASSERT_EQ(faults_of_text("b: *x\n").size(), 1U);
  EXPECT_EQ(faults_of_text("a: !!python/name:os.system 1\n").size(), 1U);
}

TEST(ReadYaml, DepthIsBounded) {
  EXPECT_EQ(faults_of_text("[[[1]]]", {.max_depth = 2}),
            Faults{"line 1, column 3  is nested deeper than 2 levels"});
  EXPECT_EQ(faults_of_text(std::string(100'000, '[')).size(), 1U);
  EXPECT_EQ(faults_of_text(std::string(100'000, '{')).size(), 1U);
}

}  // namespace
}  // namespace dstune::read_yaml_test
