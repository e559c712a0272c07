#include "core/config/overrides.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::overrides_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;
using Texts = std::vector<std::string>;

struct Result {
  std::string text;
  Overrides overrides;
  Faults faults;
};

Result apply(const char* text, const CommandLine& options) {
  auto file = json::parse(text).as_object();
  Problems problems("c.json");
  auto overrides = apply_overrides(file, options, problems);
  return {to_json_text(file, 0), std::move(overrides), faults_in(problems)};
}

Result without(const char* text, const Texts& keys) {
  CommandLine options;
  options.without = keys;
  return apply(text, options);
}

Result in_precision(const char* text, const char* precision) {
  CommandLine options;
  options.precision = precision;
  return apply(text, options);
}

TEST(Without, LeavesAKeyOutByItsNameWhereverItStands) {
  const auto result =
      without(R"({"a":1,"zero_optimization":{"offload_optimizer":{"device":"cpu"},"b":2},"c":3})",
              {"offload_optimizer"});

  EXPECT_EQ(result.text, R"({"a":1,"zero_optimization":{"b":2},"c":3})");
  EXPECT_EQ(
      result.overrides.notes,
      Texts{R"(tuned without /zero_optimization/offload_optimizer, which was {"device":"cpu"})"});
}

TEST(Without, LeavesAKeyOutByItsPlace) {
  const char* text = R"({"a/b":{"x":1,"y":2},"x":3})";

  EXPECT_EQ(without(text, {"/a~1b/x"}).text, R"({"a/b":{"y":2},"x":3})");
  EXPECT_EQ(without(R"({"a":{"x":1,"y":2},"x":3})", {"a.x"}).text, R"({"a":{"y":2},"x":3})");
}

TEST(Without, KnowsTheOldNamesOfAKey) {
  EXPECT_EQ(without(R"({"zero_optimization":{"cpu_offload":true}})",
                    {"/zero_optimization/offload_optimizer"})
                .text,
            R"({"zero_optimization":{}})");
  EXPECT_EQ(without(R"({"z":{"max_live_parameters":1}})", {"stage3_max_live_parameters"}).text,
            R"({"z":{}})");
}

TEST(Without, LeavesOurOwnSectionsAlone) {
  const auto result = without(R"({"dstune":{"model":"gpt2"},"model":1})", {"model"});

  EXPECT_EQ(result.text, R"({"dstune":{"model":"gpt2"}})");
}

TEST(Without, TakesAKeyThatIsNamedTwice) {
  const char* text = R"({"a":{"x":1}})";

  EXPECT_EQ(without(text, {"x", "x"}).faults, Faults{});
  EXPECT_EQ(without(text, {"a", "/a/x"}).faults, Faults{});
  EXPECT_EQ(without(text, {"a", "/a/x"}).overrides.notes.size(), 1U);
}

TEST(Without, RefusesAKeyThatIsNotThere) {
  EXPECT_EQ(
      without(R"({"zero_optimization":{"offload_optimizer":{}}})", {"offload_optimiser"}).faults,
      Faults{"--without  is \"offload_optimiser\", which is not in the file; did you "
             "mean \"offload_optimizer\"?"});
  EXPECT_EQ(without(R"({"a":{"b":1}})", {"/a/c"}).faults,
            Faults{"--without  is \"/a/c\", which is not in the file; did you mean "
                   "\"/a/b\"?"});
  EXPECT_EQ(without("{}", {"/a", ""}).faults.size(), 2U);
}

TEST(Precision, SettlesAutoAndAbsence) {
  const char* automatic = R"({"fp16":{"enabled":"auto","loss_scale":0},"bf16":{"enabled":"auto"}})";

  EXPECT_EQ(in_precision(automatic, "bf16").text,
            R"({"fp16":{"enabled":false,"loss_scale":0},"bf16":{"enabled":true}})");
  EXPECT_EQ(in_precision(automatic, "fp32").text,
            R"({"fp16":{"enabled":false,"loss_scale":0},"bf16":{"enabled":false}})");
  EXPECT_EQ(in_precision("{}", "fp16").text, R"({"fp16":{"enabled":true}})");
  EXPECT_EQ(in_precision(R"({"bfloat16":{"enabled":"auto"}})", "bf16").text,
            R"({"bfloat16":{"enabled":true}})");
  EXPECT_EQ(in_precision(R"({"bf16":null,"bfloat16":{"enabled":"auto"}})", "bf16").text,
            R"({"bf16":null,"bfloat16":{"enabled":true}})");
}

TEST(Precision, WinsOverTheFileAndSaysSo) {
  const auto result = in_precision(R"({"fp16":{"enabled":true}})", "bf16");

  EXPECT_EQ(result.text, R"({"fp16":{"enabled":false},"bf16":{"enabled":true}})");
  EXPECT_EQ(result.overrides.warnings, Texts{"--precision overrides /fp16/enabled, which is true"});
  EXPECT_EQ(result.overrides.notes, Texts{"tuned in bf16, as --precision says"});
}

TEST(Precision, TakesWhatIsEnabledAsTheChecksDo) {
  const char* text = R"({"fp16":{"enabled":"auto"},"bf16":{"enabled":"true"}})";

  EXPECT_EQ(apply(text, {}).overrides.notes, Texts{});
  EXPECT_EQ(apply(R"({"fp16":{"enabled":"auto"},"bf16":{"enabled":1}})", {}).overrides.notes,
            Texts{});
  EXPECT_EQ(in_precision(text, "fp16").overrides.warnings,
            Texts{"--precision overrides /bf16/enabled, which is true"});
}

TEST(Precision, IsBf16WhereTheFileLeavesItOpen) {
  const char* both = R"({"fp16":{"enabled":"auto"},"bf16":{"enabled":"auto"}})";
  const auto result = apply(both, {});

  EXPECT_EQ(result.text, R"({"fp16":{"enabled":false},"bf16":{"enabled":true}})");
  EXPECT_EQ(result.overrides.open_precision, "bf16");
  EXPECT_EQ(result.overrides.notes,
            Texts{"tuned in bf16, assumed since no precision is set (\"auto\"); use --precision "
                  "fp16 or fp32 to change it"});
  EXPECT_EQ(apply(R"({"bfloat16":{"enabled":"auto"}})", {}).text,
            R"({"bfloat16":{"enabled":true}})");
}

TEST(Precision, IsFp16WhereTheFileKnowsNoOther) {
  const auto result = apply(R"({"fp16":{"enabled":"auto","loss_scale":0}})", {});

  EXPECT_EQ(result.text, R"({"fp16":{"enabled":true,"loss_scale":0}})");
  EXPECT_EQ(result.overrides.open_precision, "fp16");
}

TEST(Precision, IsNotOpenWhereItIsSaid) {
  for (const char* text :
       {R"({"bf16":{"enabled":"auto"},"fp16":{"enabled":true}})", R"({"bf16":{"enabled":false}})",
        R"({"bf16":{"enabled":"auto"},"dstune":{"precision":["bf16","fp32"]}})", "{}"}) {
    const auto result = apply(text, {});

    EXPECT_EQ(result.text, text);
    EXPECT_EQ(result.overrides.open_precision, "");
    EXPECT_EQ(result.overrides.notes, Texts{});
  }
  EXPECT_EQ(in_precision(R"({"bf16":{"enabled":"auto"}})", "fp32").overrides.open_precision, "");
}

CommandLine all_values() {
  CommandLine options;
  options.sequence_length = 2048;
  options.train_batch_size = 64;
  options.micro_batch_size = 4;
  options.checkpointing = R"({"every_n_layers": 2})";
  options.lora_rank = 16;
  return options;
}

constexpr const char* kAllValues =
    R"({"train_batch_size":64,"train_micro_batch_size_per_gpu":4,"dstune":{)"
    R"("sequence_length":2048,"activation_checkpointing":{"every_n_layers":2},"lora":{"r":16}}})";

TEST(Values, StandWhereTheFileHasNone) {
  const auto result = apply("{}", all_values());

  EXPECT_EQ(result.text, kAllValues);
  EXPECT_EQ(result.overrides.warnings, Texts{});
  EXPECT_EQ(apply(R"({"train_batch_size":"auto","dstune":null})", all_values()).overrides.warnings,
            Texts{});
}

TEST(Values, WinOverTheFileAndNameBoth) {
  const auto result = apply(
      R"({"train_batch_size":32,"train_micro_batch_size_per_gpu":[1,2],"dstune":{
          "sequence_length":512,"activation_checkpointing":true,"lora":{"r":8}}})",
      all_values());

  EXPECT_EQ(result.text, kAllValues);
  EXPECT_EQ(result.overrides.warnings,
            (Texts{"--train-batch-size 64 overrides /train_batch_size, which is 32",
                   "--micro-batch-size 4 overrides /train_micro_batch_size_per_gpu, which is [1,2]",
                   "--sequence-length 2048 overrides /dstune/sequence_length, which is 512",
                   R"(--checkpointing {"every_n_layers":2} overrides )"
                   "/dstune/activation_checkpointing, which is true",
                   "--lora-r 16 overrides /dstune/lora/r, which is 8"}));
  EXPECT_EQ(apply(kAllValues, all_values()).overrides.warnings, Texts{});
}

TEST(Values, OneLengthWinsOverSeveralButNotOverThoseThatVary) {
  CommandLine options;
  options.sequence_length = 64;

  const auto several = apply(R"({"dstune":{"lengths":[512,1024]}})", options);
  const auto varying = apply(R"({"dstune":{"lengths":{"batches":"packed"}}})", options);

  EXPECT_EQ(several.text, R"({"dstune":{"sequence_length":64}})");
  EXPECT_EQ(several.overrides.warnings,
            Texts{"--sequence-length 64 overrides /dstune/lengths, which is [512,1024]"});
  EXPECT_EQ(varying.text, R"({"dstune":{"lengths":{"batches":"packed"},"sequence_length":64}})");
}

TEST(Values, AreLeftToTheChecksWhereASectionIsNone) {
  EXPECT_EQ(apply(R"({"dstune":3})", all_values()).text,
            R"({"dstune":3,"train_batch_size":64,"train_micro_batch_size_per_gpu":4})");
}

TEST(Values, OfCheckpointingAreJson) {
  CommandLine options;
  options.checkpointing = "every layer";

  EXPECT_EQ(apply("{}", options).faults,
            Faults{"--checkpointing  is \"every layer\"; accepted: a value of "
                   "dstune.activation_checkpointing, such as true, '{\"every_n_layers\": 2}' or "
                   "'[false, true]'"});
}

}  // namespace
}  // namespace dstune::overrides_test
