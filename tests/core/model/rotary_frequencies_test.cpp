#include "core/model/rotary_frequencies.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::rotary_frequencies_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kColumns = 16;
constexpr std::int64_t kPositions = 256;

json::array fixture_cases() {
  std::ifstream file(test::test_data("rotary_fixture.json"));
  return json::parse(std::string(std::istreambuf_iterator<char>(file), {})).at("cases").as_array();
}

TEST(RotaryFrequencies, AreThoseOfHuggingFaceForEveryKind) {
  for (const auto& value : fixture_cases()) {
    const json::object& config = value.at("config").as_object();
    Problems problems("config.json");

    const auto rope = read_rope_parameters(config, kPositions, kColumns, "", problems);

    ASSERT_TRUE(rope) << json::serialize(config);
    const RotaryFrequencies actual = rotary_frequencies(
        *rope, kPositions, kColumns, value.at("sequence_length").to_number<std::int64_t>());
    EXPECT_NEAR(actual.scaling, value.at("scaling").to_number<double>(), 1e-6);
    const auto& expected = value.at("values").as_array();
    ASSERT_EQ(actual.values.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double angle = expected[i].to_number<double>();
      EXPECT_NEAR(actual.values[i], angle, 2e-6 * angle) << json::serialize(config);
    }
  }
}

std::string problems_of(const char* config) {
  Problems problems("config.json");
  const auto rope = read_rope_parameters(json::parse(config).as_object(), kPositions, kColumns,
                                         "/model", problems);
  EXPECT_FALSE(rope);
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(RopeParameters, OfAnUnknownKindAreRefusedByItsName) {
  EXPECT_THAT(problems_of(R"({"rope_scaling": {"rope_type": "ntk", "factor": 2}})"),
              HasSubstr("/model/rope_scaling/rope_type  is \"ntk\"; accepted: "));
}

TEST(RopeParameters, MayNameTheirKindTwice) {
  const auto config = json::parse(R"({"rope_scaling": {"type": "default", "factor": 2,
                                                       "rope_type": "linear"}})");
  Problems problems("config.json");

  const auto rope = read_rope_parameters(config.as_object(), kPositions, kColumns, "", problems);

  ASSERT_TRUE(rope);
  EXPECT_EQ(rope->at("rope_type"), "linear");
  EXPECT_FALSE(rope->contains("type"));
}

TEST(RopeParameters, OfAKindNeedWhatItReads) {
  EXPECT_THAT(problems_of(R"({"rope_parameters": {"rope_type": "linear"}})"),
              HasSubstr("/model/rope_parameters/factor  is missing, which rope_type linear needs"));
  EXPECT_THAT(problems_of(R"({"rope_scaling": {"type": "longrope", "short_factor": [1]}})"),
              HasSubstr("/model/rope_scaling/long_factor  is missing"));
  EXPECT_THAT(problems_of(R"({"rope_scaling": {"type": "longrope", "short_factor": [1],
                                               "long_factor": [1]}})"),
              HasSubstr("/model/rope_scaling/short_factor  is not a list of 8 numbers above 0"));
  EXPECT_THAT(problems_of(R"({"rope_scaling": {"type": "llama3", "factor": 2,
                                               "low_freq_factor": 4, "high_freq_factor": 4}})"),
              HasSubstr("/model/rope_scaling/high_freq_factor  is not above low_freq_factor"));
}

}  // namespace
}  // namespace dstune::rotary_frequencies_test
