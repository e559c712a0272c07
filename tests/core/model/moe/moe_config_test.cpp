#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/model/llama/llama.hpp"

namespace dstune::moe_config_test {
namespace {

using llama::ExpertSettings;
using llama::Kin;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Reading {
  std::optional<ModelSpec> spec;
  std::string problems;
};

Reading read(Kin kin, const char* config) {
  Reading reading;
  Problems problems("config.json");
  std::vector<std::string> warnings;
  reading.spec = llama::read(kin, json::parse(config).as_object(), "", problems, warnings);
  EXPECT_THAT(warnings, IsEmpty());
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    reading.problems = error.what();
  }
  return reading;
}

llama::LlamaSettings settings(Kin kin, const char* config) {
  const Reading reading = read(kin, config);
  EXPECT_EQ(reading.problems, "");
  return llama::settings_of(reading.spec.value());
}

TEST(MoeConfig, AbsentKeysAreHuggingFacesDefaults) {
  const ExpertSettings mixtral = settings(Kin::mixtral, "{}").experts;
  EXPECT_EQ(mixtral.count, 8);
  EXPECT_EQ(mixtral.chosen, 2);
  EXPECT_EQ(mixtral.inner_size, 14336);
  EXPECT_TRUE(mixtral.normalised && mixtral.weights_in_fp32);
  EXPECT_THAT(settings(Kin::mixtral, "{}").rope, HasSubstr("1E6"));
  EXPECT_EQ(read(Kin::mixtral, "{}").spec->layer_norm_epsilon, 1e-5);

  const ExpertSettings qwen2 = settings(Kin::qwen2_moe, "{}").experts;
  EXPECT_EQ(qwen2.count, 60);
  EXPECT_EQ(qwen2.chosen, 4);
  EXPECT_EQ(qwen2.inner_size, 1408);
  EXPECT_EQ(qwen2.shared_size, 5632);
  EXPECT_FALSE(qwen2.normalised || qwen2.weights_in_fp32);
  EXPECT_TRUE(settings(Kin::qwen2_moe, "{}").input_biases);

  const ExpertSettings qwen3 = settings(Kin::qwen3_moe, "{}").experts;
  EXPECT_EQ(qwen3.count, 128);
  EXPECT_EQ(qwen3.chosen, 8);
  EXPECT_EQ(qwen3.inner_size, 768);
  EXPECT_EQ(qwen3.shared_size, 0);
  EXPECT_EQ(qwen3.balance, 0);
  EXPECT_FALSE(settings(Kin::qwen3_moe, "{}").input_biases);
}

TEST(MoeConfig, LayersHaveExpertsByStepAndByList) {
  EXPECT_THAT(settings(Kin::qwen3_moe, R"({"num_hidden_layers": 5, "decoder_sparse_step": 2})")
                  .experts.in_layer,
              ElementsAre(false, true, false, true, false));
  EXPECT_THAT(settings(Kin::qwen2_moe, R"({"num_hidden_layers": 3, "mlp_only_layers": [0, 2]})")
                  .experts.in_layer,
              ElementsAre(false, true, false));
  EXPECT_THAT(
      settings(Kin::qwen3_moe, R"({"num_hidden_layers": 2, "num_experts": 0})").experts.in_layer,
      ElementsAre(false, false));
}

TEST(MoeConfig, WindowsAreOfEveryOtherLayerOrOfAll) {
  const char* const asked =
      R"({"num_hidden_layers": 4, "use_sliding_window": true, "max_window_layers": 2})";
  EXPECT_THAT(settings(Kin::qwen2_moe, asked).windowed, ElementsAre(true, false, false, false));
  EXPECT_THAT(settings(Kin::qwen3_moe, asked).windowed, ElementsAre(true, true, true, true));
  EXPECT_EQ(settings(Kin::qwen3_moe, asked).window_of(3), 4096);
  EXPECT_EQ(settings(Kin::qwen3_moe, "{}").window_of(0), 0);
  EXPECT_EQ(settings(Kin::mixtral, "{}").window_of(0), 0);
}

TEST(MoeConfig, TheBalanceCountsWhereLogitsArePutOut) {
  EXPECT_EQ(settings(Kin::mixtral, R"({"router_aux_loss_coef": 0.02})").experts.balance, 0);
  EXPECT_EQ(settings(Kin::mixtral, R"({"output_router_logits": true})").experts.balance, 0.001);
}

TEST(MoeConfig, WhatIsNotModelledIsRefusedByName) {
  EXPECT_THAT(read(Kin::mixtral, R"({"router_jitter_noise": 0.1})").problems,
              HasSubstr("/router_jitter_noise"));
  EXPECT_THAT(read(Kin::mixtral, R"({"hidden_act": "gelu_new"})").problems,
              HasSubstr("experts are modelled with functions of one kernel"));
  EXPECT_THAT(read(Kin::qwen3_moe, R"({"num_experts": 4, "num_experts_per_tok": 5})").problems,
              HasSubstr("/num_experts_per_tok  is 5; accepted: at most the number of experts, 4"));
  EXPECT_THAT(read(Kin::qwen3_moe, R"({"mlp_only_layers": ["0"]})").problems,
              HasSubstr("/mlp_only_layers  has \"0\"; accepted: numbers of layers"));
}

// h = 8, k = v of 2 heads of 2, f = 3 of 4 experts, of which 2 take a token, and V = 5.
TEST(MoeConfig, FlopsCountTheExpertsOfAToken) {
  const ModelSpec spec = read(Kin::qwen2_moe, R"({
      "vocab_size": 5, "hidden_size": 8, "intermediate_size": 7, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 4,
      "num_experts_per_tok": 2, "moe_intermediate_size": 3, "shared_expert_intermediate_size": 6,
      "mlp_only_layers": [0]})")
                             .spec.value();
  constexpr double kAttention = 2 * 8 * (8 + 4);
  constexpr double kDense = 3 * 8 * 7;
  constexpr double kSparse = 3 * 8 * (2 * 3 + 6) + 8 + 8 * 4;
  constexpr double kWeights = 2 * kAttention + kDense + kSparse + 5 * 8;

  EXPECT_EQ(llama::training_flops(spec, 10, 16), 10 * (6 * kWeights + 12 * 2 * 8 * 16));
}

}  // namespace
}  // namespace dstune::moe_config_test
