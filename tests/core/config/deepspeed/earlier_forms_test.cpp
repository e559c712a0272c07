#include "core/config/deepspeed/earlier_forms.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/deepspeed/deepspeed_table.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::earlier_forms_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

struct Result {
  std::string text;
  std::vector<std::string> warnings;
  Faults faults;
};

Result modern(const char* text, const DeepSpeedVersion& version = kNewestDeepSpeed) {
  Problems problems("config.json");
  const auto object = without_earlier_forms(json::parse(text).as_object(), version, problems);
  return {to_json_text(object, 0), problems.warnings(), faults_in(problems)};
}

TEST(WithoutEarlierForms, LeavesTheRestAlone) {
  const auto* const text = R"({"bf16":{"enabled":true},"zero_optimization":{"stage":2},"mine":1})";

  const auto result = modern(text);

  EXPECT_EQ(result.text, text);
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_TRUE(result.faults.empty());
}

TEST(WithoutEarlierForms, LeavesOutWhatIsOff) {
  const auto result = modern(
      R"({"amp":{"enabled":"auto"},"elasticity":{"enabled":false,"max_train_batch_size":2000},
          "sparse_gradients":false,"eigenvalue":{},"curriculum_learning":null,
          "zero_optimization":{"stage":3,"mics_shard_size":-1,"zeropp_loco_param":null}})");

  EXPECT_EQ(result.text, R"({"zero_optimization":{"stage":3}})");
  EXPECT_EQ(result.faults, Faults{});
  EXPECT_EQ(result.warnings,
            (std::vector<std::string>{
                "/* is left out: it is off, and DeepSpeed 0.19.8 refuses files with it (5 keys: "
                "amp, elasticity, sparse_gradients, ...)",
                "/zero_optimization/* is left out: it is off, and DeepSpeed 0.19.8 refuses files "
                "with it (2 keys: mics_shard_size, zeropp_loco_param)"}));
}

TEST(WithoutEarlierForms, RejectsWhatIsAskedFor) {
  const auto result = modern(
      R"({"elasticity":{"enabled":true},"progressive_layer_drop":{"enabled":true},
          "curriculum_learning":{"enabled":true},"sparse_attention":{"mode":"fixed"},
          "quantize_training":{"enabled":true},"sparse_gradients":true,"amp":{"enabled":true},
          "zero_optimization":{"zeropp_loco_param":{"err_beta":0.8}}})");

  ASSERT_EQ(result.faults.size(), 8U);
  EXPECT_EQ(result.faults[0],
            "/elasticity  is not supported any more: DeepSpeed 0.19.8 refuses files with it; "
            "remove it");
  EXPECT_EQ(result.text, R"({"zero_optimization":{}})");
}

TEST(WithoutEarlierForms, KeepsMiCSWithAWarning) {
  const auto result = modern(R"({"zero_optimization":{"mics_shard_size":4}})");

  EXPECT_EQ(result.text, R"({"zero_optimization":{"mics_shard_size":4}})");
  EXPECT_EQ(result.faults, Faults{});
  EXPECT_EQ(result.warnings.size(), 1U);
}

TEST(WithoutEarlierForms, TakesATruthForAStage) {
  EXPECT_EQ(modern(R"({"zero_optimization":true})").text, R"({"zero_optimization":{"stage":1}})");
  EXPECT_EQ(modern(R"({"zero_optimization":false})").text, R"({"zero_optimization":{"stage":0}})");
}

TEST(WithoutEarlierForms, KeepsWhatTheReleaseTakes) {
  const auto* const text =
      R"({"amp":{"enabled":true},"zero_optimization":{"stage":3,"mics_shard_size":2}})";

  const auto before = modern(text, {0, 18, 9});
  const auto between = modern(text, {0, 19, 7});

  EXPECT_EQ(before.text, text);
  EXPECT_TRUE(before.warnings.empty());
  EXPECT_EQ(between.warnings, std::vector<std::string>{
                                  "/zero_optimization/mics_shard_size is modelled, but DeepSpeed "
                                  "0.19.7 refuses files with it: it needs an earlier release"});
  EXPECT_EQ(between.faults, Faults{});
}

TEST(RemovedKeys, AreThoseOfTheNewestsTable) {
  std::vector<std::string> theirs;
  for (const auto key : deepspeed_table::kRemovedAtTop) theirs.push_back(child("", key));
  for (const auto key : deepspeed_table::kRemovedInZero) {
    theirs.push_back(child("/zero_optimization", key));
  }
  std::vector<std::string> ours;
  for (const KeySince& row : removed_keys()) ours.emplace_back(row.pointer);

  EXPECT_THAT(ours, testing::UnorderedElementsAreArray(theirs));
}

}  // namespace
}  // namespace dstune::earlier_forms_test
