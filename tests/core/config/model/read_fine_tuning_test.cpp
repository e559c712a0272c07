#include "core/config/model/read_fine_tuning.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/dstune_section.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::read_fine_tuning_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::Faults;
using testing_support::faults_in;

struct Read {
  FineTuning tuning;
  Faults faults;
};

Read read(const char* keys, const char* model = "\"gpt2\"") {
  Problems problems("config.json");
  TuningConfig config;
  config.source = "c.json";
  read_dstune(json::parse(concat(R"({"model": )", model, ", ", keys, "}")), {}, config, problems);
  return {config.settings.model.fine_tuning, faults_in(problems)};
}

void expect_fault(const char* keys, const char* part, const char* model = "\"gpt2\"") {
  const Faults faults = read(keys, model).faults;

  ASSERT_EQ(faults.size(), 1U) << keys;
  EXPECT_THAT(faults.front(), HasSubstr(part));
}

TEST(ReadFineTuning, TakesPatternsOfParameters) {
  EXPECT_THAT(read(R"("trainable": "*.bias")").tuning.trainable, ElementsAre("*.bias"));
  EXPECT_THAT(read(R"("trainable": ["transformer.h.11.*", "*ln_f*"])").tuning.trainable,
              ElementsAre("transformer.h.11.*", "*ln_f*"));
  EXPECT_TRUE(read(R"("seed": 1)").tuning.is_everything());
}

TEST(ReadFineTuning, RefusesPatternsOfNothing) {
  expect_fault(R"("trainable": ["*.bias", "transformer.h.12.*"])",
               "/dstune/trainable/1  is \"transformer.h.12.*\", which is the name of no parameter; "
               "did you mean \"transformer.h.1");
  expect_fault(R"("trainable": "transformer.ln.*")", "did you mean \"transformer.ln_f.*\"?");
  expect_fault(R"("trainable": [])", "is an empty list");
  expect_fault(R"("trainable": 3)", "/dstune/trainable");
  expect_fault(R"("trainable": "*", "lora": {})", "is given with \"lora\"");
}

TEST(ReadFineTuning, CompletesLoraAsPeftDoes) {
  const LoraSettings plain = read(R"("lora": {})").tuning.lora.value();
  EXPECT_EQ(plain.rank, 8);
  EXPECT_EQ(plain.scaling(), 1);
  EXPECT_THAT(plain.targets, ElementsAre("c_attn"));
  EXPECT_THAT(plain.saved, ElementsAre());

  const LoraSettings classifier =
      read(R"("task": "sequence_classification", "lora": {"r": 4, "use_rslora": true})",
           R"("bert-base-cased")")
          .tuning.lora.value();
  EXPECT_EQ(classifier.scaling(), 4);
  EXPECT_THAT(classifier.targets, ElementsAre("query", "value"));
  EXPECT_THAT(classifier.saved, ElementsAre("classifier", "score"));
}

TEST(ReadFineTuning, TakesListsPatternsAndLayers) {
  EXPECT_EQ(read(R"("lora": {"target_modules": "ALL-linear"})").tuning.lora->target_pattern,
            "all-linear");
  const Read listed = read(R"("lora": {"target_modules": ["c_fc", "q_proj"], "bias": "all",
      "layers_to_transform": 3, "exclude_modules": ".*\\.5\\..*", "lora_dropout": 0.1})");

  EXPECT_EQ(listed.faults, Faults{});
  EXPECT_THAT(listed.tuning.lora->layers, ElementsAre(3));
  EXPECT_EQ(listed.tuning.lora->excluded_pattern, ".*\\.5\\..*");
  EXPECT_EQ(listed.tuning.lora->bias, LoraSettings::Bias::all);
}

TEST(ReadFineTuning, RefusesLoraThatHasNoPlaceOrIsNotModelled) {
  expect_fault(R"("lora": {"target_modules": ["c_atn"]})",
               "/dstune/lora/target_modules  matches no module of this model; did you mean "
               "\"c_attn\"? accepted: \"c_attn\", \"c_fc\", \"c_proj\", \"all-linear\", or");
  expect_fault(R"("lora": {"target_modules": ["wte"]})", "has \"transformer.wte\", a Embedding");
  expect_fault(R"("lora": {"target_modules": ["lm_head"]})", "that is the output layer");
  expect_fault(R"("lora": {"target_modules": "c_(attn"})", "not a supported regular expression");
  expect_fault(R"("lora": {"target_modules": "(?=.*attn).*c_.*"})",
               "is not a supported regular expression (invalid perl operator: (?=); accepted: one "
               "of RE2's syntax, a list");
  expect_fault(R"("lora": {"modules_to_save": ["wte"]})", "is tied to another");
  expect_fault(R"("lora": {"modules_to_save": ["lnf"]})", "did you mean \"ln_f\"?");
  expect_fault(R"("lora": {"r": 0})", "/dstune/lora/r");
  expect_fault(R"("lora": {"use_dora": true})", "/dstune/lora/use_dora");
  expect_fault(R"("lora": {"layers_to_transform": [1, -1]})", "is or has -1");
  expect_fault(R"("lora": {"target_modules": "all-linear", "layers_to_transform": [1]})",
               "which PEFT refuses");
  expect_fault(R"("lora": {})", "PEFT has no default for \"distilbert\"",
               R"("distilbert-base-cased")");
  expect_fault(R"("lora": {"target_modules": "all-linear"})",
               "PEFT adapts the experts and routers of \"mixtral\" too, which is not modelled",
               R"("mixtral-8x7b")");
}

TEST(ReadFineTuning, SurvivesItsTextForm) {
  ModelSpec model;
  model.fine_tuning = read(R"("lora": {"target_modules": "all-linear", "exclude_modules": ["c_fc"],
      "modules_to_save": ["ln_f"], "use_rslora": true, "bias": "lora_only"})")
                          .tuning;
  EXPECT_EQ(model_spec_from_json(to_json(model)), model);

  model.fine_tuning = read(R"("trainable": ["*ln*"])").tuning;
  EXPECT_EQ(model_spec_from_json(to_json(model)), model);
}

}  // namespace
}  // namespace dstune::read_fine_tuning_test
