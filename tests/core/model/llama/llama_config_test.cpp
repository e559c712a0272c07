#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/model/llama/llama.hpp"

namespace dstune::llama_config_test {
namespace {

using llama::Kin;
using llama::LlamaSettings;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Reading {
  std::optional<ModelSpec> spec;
  std::vector<std::string> warnings;
  std::string problems;
};

Reading read(Kin kin, const char* config) {
  Reading reading;
  Problems problems("config.json");
  reading.spec = llama::read(kin, json::parse(config).as_object(), "", problems, reading.warnings);
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    reading.problems = error.what();
  }
  return reading;
}

LlamaSettings settings(Kin kin, const char* config) {
  const Reading reading = read(kin, config);
  EXPECT_EQ(reading.problems, "");
  return llama::settings_of(reading.spec.value());
}

TEST(LlamaConfig, AbsentKeysAreHuggingFacesDefaults) {
  const ModelSpec spec = read(Kin::llama, "{}").spec.value();
  const LlamaSettings own = llama::settings_of(spec);

  EXPECT_EQ(spec.family, "llama");
  EXPECT_EQ(spec.vocab_size, 32000);
  EXPECT_EQ(spec.hidden_size, 4096);
  EXPECT_EQ(spec.inner_size, 11008);
  EXPECT_EQ(spec.max_positions, 2048);
  EXPECT_EQ(spec.layer_norm_epsilon, 1e-6);
  EXPECT_EQ(own.kv_heads, 32);
  EXPECT_EQ(own.head_size, 128);
  EXPECT_FALSE(own.tied || own.input_biases || own.output_bias || own.mlp_bias || own.head_norms);
  EXPECT_EQ(own.window_of(0), 0);
}

TEST(LlamaConfig, KinDifferInWhatIsAbsent) {
  EXPECT_EQ(settings(Kin::mistral, "{}").kv_heads, 8);
  EXPECT_EQ(settings(Kin::mistral, "{}").window_of(31), 4096);
  EXPECT_EQ(settings(Kin::mistral, R"({"sliding_window": null})").window_of(0), 0);
  EXPECT_TRUE(settings(Kin::qwen2, "{}").input_biases);
  EXPECT_FALSE(settings(Kin::qwen2, "{}").output_bias);
  EXPECT_EQ(settings(Kin::qwen3, R"({"hidden_size": 1024})").head_size, 128);
  EXPECT_TRUE(settings(Kin::qwen3, "{}").head_norms);
}

TEST(LlamaConfig, NullHeadsAreThoseOfTheQueries) {
  const LlamaSettings own =
      settings(Kin::mistral, R"({"num_key_value_heads": null, "head_dim": null,
                                                  "hidden_size": 96, "num_attention_heads": 6})");

  EXPECT_EQ(own.kv_heads, 6);
  EXPECT_EQ(own.head_size, 16);
}

TEST(LlamaConfig, BiasesAreOfAllFourProjectionsOrOfTheMlp) {
  const LlamaSettings own = settings(Kin::llama, R"({"attention_bias": true, "mlp_bias": true})");

  EXPECT_TRUE(own.input_biases && own.output_bias && own.mlp_bias);
}

TEST(LlamaConfig, WindowsOfQwenAreUsedOnlyOnRequest) {
  const char* const unused = R"({"num_hidden_layers": 3, "sliding_window": 8})";
  const char* const from_second = R"({"num_hidden_layers": 3, "sliding_window": 8,
                                      "use_sliding_window": true, "max_window_layers": 1})";
  const char* const listed = R"({"num_hidden_layers": 2, "sliding_window": 8,
      "use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"]})";

  EXPECT_THAT(settings(Kin::qwen2, unused).windowed, ElementsAre(false, false, false));
  EXPECT_THAT(settings(Kin::qwen2, from_second).windowed, ElementsAre(false, true, true));
  EXPECT_EQ(settings(Kin::qwen3, from_second).window_of(2), 8);
  EXPECT_THAT(settings(Kin::qwen3, listed).windowed, ElementsAre(true, false));
}

TEST(LlamaConfig, GemmaHasItsOwnDefaults) {
  const LlamaSettings gemma = settings(Kin::gemma, R"({"hidden_act": "gelu"})");
  const LlamaSettings gemma3 = settings(Kin::gemma3_text, R"({"num_hidden_layers": 7})");

  EXPECT_EQ(gemma.activation, "gelu_pytorch_tanh");
  EXPECT_TRUE(gemma.tied && gemma.is_gemma && !gemma.post_norms && !gemma.head_norms);
  EXPECT_EQ(gemma.head_size, 256);
  EXPECT_TRUE(gemma3.tied && gemma3.is_gemma && gemma3.post_norms && gemma3.head_norms);
  EXPECT_THAT(gemma3.windowed, ElementsAre(true, true, true, true, true, false, true));
  EXPECT_EQ(gemma3.score_scale, 1.0 / 16);
}

TEST(LlamaConfig, WindowedLayersOfGemma3TurnByAnglesOfTheirOwn) {
  const auto theta = [](const std::string& rope) {
    return json::parse(rope).at("rope_theta").to_number<double>();
  };
  const LlamaSettings old = settings(Kin::gemma3_text, R"({"rope_theta": 5e5,
      "rope_local_base_freq": 300, "rope_scaling": {"rope_type": "linear", "factor": 8}})");
  const LlamaSettings absent = settings(Kin::gemma3_text, "{}");
  const LlamaSettings nested = settings(Kin::gemma3_text, R"({"rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 5e5},
      "sliding_attention": {"rope_type": "default", "rope_theta": 300}}})");

  EXPECT_EQ(theta(old.rope), 5e5);
  EXPECT_EQ(theta(old.windowed_rope), 300);
  EXPECT_EQ(theta(absent.rope), 1e6);
  EXPECT_EQ(theta(absent.windowed_rope), 1e4);
  EXPECT_EQ(nested.rope, old.rope);
  EXPECT_EQ(nested.windowed_rope, old.windowed_rope);
}

TEST(LlamaConfig, KeysThatContradictEachOtherAreFaults) {
  EXPECT_THAT(read(Kin::llama, R"({"hidden_size": 100})").problems,
              HasSubstr("/num_attention_heads  is 32, which does not divide hidden_size 100"));
  EXPECT_THAT(
      read(Kin::mistral, R"({"num_key_value_heads": 5})").problems,
      HasSubstr("/num_key_value_heads  is 5, which does not divide num_attention_heads 32"));
  EXPECT_THAT(read(Kin::mistral, R"({"hidden_size": 96})").problems,
              HasSubstr("/head_dim  is 3; accepted: an even integer"));
  EXPECT_THAT(read(Kin::qwen2, R"({"layer_types": ["full_attention"]})").problems,
              HasSubstr("/layer_types  has 1 elements; accepted: num_hidden_layers, 32"));
  EXPECT_THAT(read(Kin::qwen2, R"({"num_hidden_layers": 1, "layer_types": ["sliding_attention"]})")
                  .problems,
              HasSubstr("/layer_types  has sliding_attention without use_sliding_window"));
}

TEST(LlamaConfig, WhatIsNotModelledIsRefusedByName) {
  EXPECT_THAT(read(Kin::llama, R"({"hidden_act": "gelu_10"})").problems,
              HasSubstr("/hidden_act  is \"gelu_10\""));
  EXPECT_THAT(read(Kin::llama, R"({"rope_scaling": {"type": "ntk"}})").problems,
              HasSubstr("/rope_scaling/type  is \"ntk\""));
}

TEST(LlamaConfig, CapsAreGemma2sUnlessTheyAreNull) {
  const LlamaSettings usual = settings(Kin::gemma2, R"({"num_hidden_layers": 3})");
  const LlamaSettings none =
      settings(Kin::gemma2, R"({"attn_logit_softcapping": null, "final_logit_softcapping": null})");
  const LlamaSettings later = settings(Kin::gemma3_text, R"({"final_logit_softcapping": 20})");

  EXPECT_EQ(usual.score_cap, 50);
  EXPECT_EQ(usual.logit_cap, 30);
  EXPECT_THAT(usual.windowed, ElementsAre(true, false, true));
  EXPECT_TRUE(usual.never_sdpa && usual.post_norms && !usual.head_norms);
  EXPECT_TRUE(none.never_sdpa);
  EXPECT_EQ(none.score_cap + none.logit_cap, 0);
  EXPECT_EQ(later.score_cap, 0);
  EXPECT_EQ(later.logit_cap, 20);
  EXPECT_THAT(read(Kin::gemma2, R"({"final_logit_softcapping": 0})").problems,
              HasSubstr("/final_logit_softcapping  is 0; accepted: "));
}

TEST(LlamaConfig, PartsOfPhi3sHeadsTurn) {
  const LlamaSettings part = settings(Kin::phi3, R"({"partial_rotary_factor": 0.75})");
  const LlamaSettings within = settings(
      Kin::phi3, R"({"rope_parameters": {"rope_theta": 1e5, "partial_rotary_factor": 0.25}})");

  EXPECT_EQ(settings(Kin::phi3, "{}").turned, 96);
  EXPECT_EQ(part.turned, 72);
  EXPECT_EQ(within.turned, 24);
  EXPECT_THAT(read(Kin::phi3, R"({"partial_rotary_factor": 0.01})").problems,
              HasSubstr("/partial_rotary_factor  is 0.01, so that 0 of a head's 96 columns turn"));
  EXPECT_THAT(read(Kin::phi3, R"({"partial_rotary_factor": 1.5})").problems,
              HasSubstr("/partial_rotary_factor  is 1.5"));
}

TEST(LlamaConfig, LongropeOfPhi3HasItsContextBesideAndOtherNames) {
  constexpr const char* kConfig = R"({"hidden_size": 8, "num_attention_heads": 2,
      "original_max_position_embeddings": 2048, "rope_scaling": {"type": "su",
      "short_factor": [1, 1], "long_factor": [2, 3.0], "original_max_position_embeddings": 7}})";
  const json::value rope = json::parse(settings(Kin::phi3, kConfig).rope);

  EXPECT_EQ(rope.at("rope_type"), "longrope");
  EXPECT_EQ(rope.at("long_factor"), (json::array{2.0, 3.0}));
  EXPECT_EQ(rope.at("original_max_position_embeddings").to_number<double>(), 2048);
  EXPECT_THAT(read(Kin::phi3, R"({"rope_scaling": {"type": "linear", "factor": 2}})").problems,
              HasSubstr("/rope_scaling/type  is \"linear\"; accepted: \"default\", \"longrope\""));
  EXPECT_THAT(read(Kin::phi3, R"({"rope_scaling": {"type": "longrope", "short_factor": [1],
                                                    "long_factor": [1]}})")
                  .problems,
              HasSubstr("/rope_scaling/short_factor  is not a list of 48 numbers"));
}

TEST(LlamaConfig, WarnsOfKeysThatNobodyReads) {
  EXPECT_THAT(read(Kin::llama, R"({"pretraining_tp": 1, "use_cache": true})").warnings, IsEmpty());
  EXPECT_THAT(read(Kin::llama, R"({"num_kv_heads": 8})").warnings,
              ElementsAre(HasSubstr("/num_kv_heads is not a key of Llama and has no effect")));
}

TEST(LlamaConfig, SurvivesTheWire) {
  for (const Kin kin : llama::kKin) {
    for (const ModelSpec& spec : llama::presets(kin)) {
      EXPECT_EQ(model_spec_from_json(to_json(spec)), spec) << spec.name;
    }
  }
}

}  // namespace
}  // namespace dstune::llama_config_test
