#include "core/config/model/model_info.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::model_info_test {
namespace {

using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using testing_support::Faults;
using testing_support::faults_in;

constexpr const char* kPointer = "/autotuning/model_info";
constexpr std::int64_t kParameters = 124'439'808;  // of gpt2, which a ModelSpec is by default

Faults faults_of(const GivenModelInfo& info) {
  Problems problems("config.json");
  check_model_info(info, ModelSpec{}, kParameters, problems);
  return faults_in(problems);
}

TEST(ReadModelInfo, ReadsDeepSpeedsForm) {
  Problems problems("config.json");

  const auto info = read_model_info(
      json::parse(
          R"({"profile": false, "num_params": 1.5e9, "hidden_size": 1600, "num_layers": null})"),
      kPointer, problems);

  EXPECT_EQ(info.num_params, 1'500'000'000);
  EXPECT_EQ(info.hidden_size, 1600);
  EXPECT_EQ(info.num_layers, std::nullopt);
  EXPECT_TRUE(faults_in(problems).empty());
}

TEST(ReadModelInfo, NamesEveryFault) {
  Problems problems("config.json");

  read_model_info(json::parse(R"({"profile": 3, "num_params": -1, "hidden_size": "big"})"),
                  kPointer, problems);

  const auto faults = faults_in(problems);
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_THAT(faults[0], StartsWith("/autotuning/model_info/profile "));
  EXPECT_THAT(faults[1], StartsWith("/autotuning/model_info/num_params "));
  EXPECT_THAT(faults[2], StartsWith("/autotuning/model_info/hidden_size "));
}

TEST(CheckModelInfo, AcceptsWhatTheModelHasAndARoundNumberOfParameters) {
  EXPECT_TRUE(faults_of({}).empty());
  EXPECT_TRUE(faults_of({kParameters, 768, 12}).empty());
  EXPECT_TRUE(faults_of({125'000'000, 768, 12}).empty());
}

TEST(CheckModelInfo, RefusesWhatContradictsTheModel) {
  const auto faults = faults_of({1'000'000'000, 1024, 24});

  EXPECT_THAT(
      faults,
      UnorderedElementsAre(
          "/autotuning/model_info/num_params  is 1000000000, but the model of dstune.model has "
          "124439808; remove one of the two",
          "/autotuning/model_info/hidden_size  is 1024, but the model of dstune.model has 768; "
          "remove one of the two",
          "/autotuning/model_info/num_layers  is 24, but the model of dstune.model has 12; remove "
          "one of the two"));
}

}  // namespace
}  // namespace dstune::model_info_test
