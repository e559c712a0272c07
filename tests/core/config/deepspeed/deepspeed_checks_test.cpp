#include "core/config/deepspeed/deepspeed_checks.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::deepspeed_checks_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

Faults check(const char* text) {
  Problems problems("config.json");
  check_relations(json::parse(text).as_object(), problems);
  return faults_in(problems);
}

std::string modern(const char* text) {
  return to_json_text(without_deprecated_offload(json::parse(text).as_object()), 0);
}

TEST(CheckRelations, SaysThatALoggerOfCollectivesIsNotMeasured) {
  const auto warnings = [](const char* text) {
    Problems problems("config.json");
    check_relations(json::parse(text).as_object(), problems);
    return problems.warnings();
  };

  ASSERT_EQ(warnings(R"({"comms_logger":{"enabled":true}})").size(), 1U);
  EXPECT_EQ(warnings(R"({"comms_logger":{"enabled":true}})")[0].rfind("/comms_logger is on: ", 0),
            0U);
  EXPECT_TRUE(warnings(R"({"comms_logger":{"enabled":false}})").empty());
}

TEST(CheckRelations, AllowsOnePrecision) {
  EXPECT_EQ(check(R"({"fp16":{"enabled":true},"bf16":{"enabled":false}})"), Faults{});
  EXPECT_EQ(check(R"({"fp16":{"enabled":true},"bf16":{"enabled":true}})"),
            Faults{"/bf16/enabled  is true and so is /fp16/enabled; accepted: one of the two"});
}

TEST(CheckRelations, ADynamicLossScaleHasALowestValue) {
  EXPECT_EQ(check(R"({"fp16":{"enabled":true,"min_loss_scale":0}})"),
            Faults{"/fp16/min_loss_scale  is 0; accepted: an integer >= 1 where the loss scale is "
                   "dynamic"});
  EXPECT_EQ(check(R"({"fp16":{"enabled":true,"min_loss_scale":0,"loss_scale":1}})"), Faults{});
  EXPECT_EQ(check(R"({"fp16":{"enabled":false,"min_loss_scale":0}})"), Faults{});
}

TEST(CheckRelations, NvmeNeedsAFolder) {
  EXPECT_EQ(check(R"({"zero_optimization":{"offload_param":{"device":"nvme","nvme_path":"/ssd"},
                                           "offload_optimizer":{"device":"nvme"}}})"),
            Faults{"/zero_optimization/offload_optimizer/nvme_path  is missing; device \"nvme\" "
                   "needs a folder"});
}

TEST(CheckRelations, AnOptimizerHasATypeAndTwoBetas) {
  EXPECT_EQ(check(R"({"optimizer":{"type":"Adam","params":{"betas":[0.9,0.95]}}})"), Faults{});
  EXPECT_EQ(check(R"({"optimizer":{"params":{"betas":[0.9,1],"max_grad_norm":1}}})"),
            (Faults{"/optimizer/type  is missing; accepted: a name such as \"AdamW\"",
                    "/optimizer/params/max_grad_norm  is not accepted by DeepSpeed; write "
                    "gradient_clipping at the top instead",
                    "/optimizer/params/betas  is [0.9,1]; accepted: a list of two numbers >= 0 "
                    "and < 1"}));
  EXPECT_EQ(check(R"({"optimizer":{"type":"Adam","params":{"betas":["a","b"]}}})").size(), 1U);
}

TEST(CheckRelations, RejectsOldAndNewOffloadTogether) {
  EXPECT_EQ(check(R"({"zero_optimization":{"cpu_offload":true,"offload_optimizer":{}}})"),
            Faults{"/zero_optimization/cpu_offload  is the old form of \"offload_optimizer\"; keep "
                   "one of them"});
  EXPECT_EQ(check(R"({"zero_optimization":{"cpu_offload_param":false,"offload_param":{},
                       "stage3_gather_fp16_weights_on_model_save":true,
                       "stage3_gather_16bit_weights_on_model_save":true}})")
                .size(),
            2U);
}

TEST(WithoutDeprecatedOffload, WritesTheNewForm) {
  EXPECT_EQ(modern(R"({"cpu_offload":true,"reduce_scatter":true,"cpu_offload_param":true,
                       "cpu_offload_use_pin_memory":false})"),
            R"({"reduce_scatter":true,"offload_optimizer":{"device":"cpu","pin_memory":false},)"
            R"("offload_param":{"device":"cpu","pin_memory":false}})");
  EXPECT_EQ(modern(R"({"cpu_offload":false,"cpu_offload_param":null})"), "{}");
}

TEST(WithoutKeys, KeepsTheOrderOfTheOthers) {
  const auto object = json::parse(R"({"a":1,"b":2,"c":3,"d":4})").as_object();

  EXPECT_EQ(to_json_text(without_keys(object, {"b", "x"}), 0), R"({"a":1,"c":3,"d":4})");
}

}  // namespace
}  // namespace dstune::deepspeed_checks_test
