#include "core/config/deepspeed/deepspeed_keys.hpp"

#include <set>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/experiment/knobs.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::deepspeed_keys_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

struct Checked {
  std::string text;
  Faults faults;
};

Checked check(const char* text) {
  Problems problems("config.json");
  const auto checked =
      check_section(json::parse(text).as_object(), deepspeed_section(), "", problems);
  return {to_json_text(checked, 0), faults_in(problems)};
}

void expect_distinct_keys(const Section& section) {
  std::set<std::string> seen;
  for (const auto& key : known_keys(section)) EXPECT_TRUE(seen.insert(key).second) << key;
  for (const auto& rule : section.rules) {
    if (rule.section != nullptr) expect_distinct_keys(*rule.section);
  }
}

TEST(DeepSpeedSection, HasEachKeyOnce) { expect_distinct_keys(deepspeed_section()); }

/// The rule at a pointer; none: the section is somebody else's.
const KeyRule* rule_at(std::string_view pointer) {
  const Section* section = &deepspeed_section();
  const KeyRule* rule = nullptr;
  for (const std::string& key : split(pointer.substr(1), '/')) {
    rule = section == nullptr ? nullptr : find_rule(*section, key);
    section = rule == nullptr ? nullptr : rule->section;
  }
  return rule;
}

TEST(DeepSpeedSection, HasTheRuleOfEachKnob) {
  const std::set<std::string> judged_elsewhere = {
      // in batch_sizes.hpp, read_checkpointing.hpp and dstune_section.cpp
      "/zero_optimization/stage", "/train_micro_batch_size_per_gpu", "/gradient_accumulation_steps",
      "/dstune/activation_checkpointing", "/dstune/zero_init"};
  for (const Knob& knob : kKnobs) {
    const std::string pointer = pointer_of(knob);
    if (judged_elsewhere.contains(pointer)) continue;
    const KeyRule* const rule = rule_at(pointer);
    ASSERT_NE(rule, nullptr) << pointer;
    KeyRule expected = knob.rule;
    expected.section = rule->section;
    EXPECT_EQ(*rule, expected) << pointer;
  }
}

TEST(DeepSpeedSection, AcceptsTheDefaultsOfDeepSpeed) {
  const auto* const text =
      R"({"fp16":{"enabled":false,"loss_scale":0,"initial_scale_power":16,)"
      R"("loss_scale_window":1000,"hysteresis":2,"consecutive_hysteresis":false,)"
      R"("min_loss_scale":1,"auto_cast":false,"fp16_master_weights_and_grads":false},)"
      R"("bf16":{"enabled":false,"check_grad_overflow":true,"immediate_grad_update":false},)"
      R"("zero_optimization":{"contiguous_gradients":true,"reduce_scatter":true,)"
      R"("use_multi_rank_bucket_allreduce":true,"reduce_bucket_size":500000000,)"
      R"("allgather_partitions":true,"allgather_bucket_size":500000000,"overlap_comm":null,)"
      R"("round_robin_gradients":false,"sub_group_size":1000000000,)"
      R"("stage3_max_live_parameters":1000000000,"stage3_max_reuse_distance":1000000000,)"
      R"("stage3_prefetch_bucket_size":50000000,"stage3_param_persistence_threshold":100000,)"
      R"("stage3_model_persistence_threshold":9223372036854775807,"zero_hpz_partition_size":1,)"
      R"("offload_optimizer":null,)"
      R"("offload_param":{"device":"none","nvme_path":null,"buffer_count":5,)"
      R"("buffer_size":100000000,"max_in_cpu":1000000000,"pin_memory":true}},)"
      R"("gradient_clipping":1.0,"prescale_gradients":false,"gradient_predivide_factor":1.0,)"
      R"("communication_data_type":null,"data_types":{"grad_accum_dtype":null},)"
      R"("steps_per_print":null,"wall_clock_breakdown":false})";

  const auto checked = check(text);

  EXPECT_EQ(checked.faults, Faults{});
  EXPECT_EQ(checked.text, text);
}

TEST(DeepSpeedSection, RejectsUnknownKeysWhereDeepSpeedDoes) {
  EXPECT_EQ(check(R"({"zero_optimization":{"overlap_com":true,"offload_param":{"devise":"cpu"}},
                      "fp16":{"enable":true},"bf16":{"loss_scale":0}})")
                .faults,
            (Faults{"/zero_optimization/overlap_com  is unknown; did you mean \"overlap_comm\"?",
                    "/zero_optimization/offload_param/devise  is unknown; did you mean "
                    "\"device\"?",
                    "/fp16/enable  is unknown; did you mean \"enabled\"?",
                    "/bf16/loss_scale  is unknown"}));
}

TEST(DeepSpeedSection, RejectsWrongTypesAndRanges) {
  EXPECT_EQ(
      check(R"({"zero_optimization":{"reduce_bucket_size":530841.6,"overlap_comm":"maybe",
                        "allgather_bucket_size":5,"sub_group_size":-1,"legacy_stage1":true},
                      "fp16":{"loss_scale":-1,"initial_scale_power":200},"gradient_clipping":-1,
                      "communication_data_type":"int8","optimizer":{"params":{"lr":"fast"}},
                      "bf16":true})")
          .faults,
      (Faults{"/zero_optimization/reduce_bucket_size  is 530841.6; accepted: an integer from "
              "1 to 1000000000000000",
              "/zero_optimization/overlap_comm  is \"maybe\"; accepted: true or false or null",
              "/zero_optimization/allgather_bucket_size  is 5; accepted: an even integer "
              "from 0 to 1000000000000000",
              "/zero_optimization/sub_group_size  is -1; accepted: an integer >= 0",
              "/zero_optimization/legacy_stage1  is true; accepted: false",
              "/fp16/loss_scale  is -1; accepted: a number >= 0",
              "/fp16/initial_scale_power  is 200; accepted: an integer from 0 to 127",
              "/gradient_clipping  is -1; accepted: a number >= 0",
              "/communication_data_type  is \"int8\"; accepted: \"fp16\", \"bf16\", "
              "\"fp32\" or null",
              "/optimizer/params/lr  is \"fast\"; accepted: a number >= 0",
              "/bf16  is true; accepted: an object or null"}));
}

TEST(DeepSpeedSection, WritesAliasesUnderTheirKey) {
  EXPECT_EQ(
      check(R"({"bfloat16":{"enabled":true},"zero_optimization":{"max_live_parameters":1e9}})")
          .text,
      R"({"bf16":{"enabled":true},"zero_optimization":{"stage3_max_live_parameters":)"
      R"(1000000000}})");
}

}  // namespace
}  // namespace dstune::deepspeed_keys_test
