#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/model/llama/llama.hpp"

namespace dstune::llama_parameters_test {
namespace {

using llama::Kin;
using testing::ElementsAre;

std::map<std::string, std::int64_t> totals_of_presets() {
  std::map<std::string, std::int64_t> totals;
  for (const Kin kin : llama::kKin) {
    for (const ModelSpec& spec : llama::presets(kin)) {
      totals[spec.name] = llama::parameters(spec).total();
    }
  }
  return totals;
}

// As their publishers give them.
TEST(LlamaParameters, TotalsAreThoseOfThePublishedModels) {
  EXPECT_THAT(totals_of_presets(), testing::ContainerEq(std::map<std::string, std::int64_t>{
                                       {"llama-2-7b", 6738415616},
                                       {"llama-2-13b", 13015864320},
                                       {"llama-2-70b", 68976648192},
                                       {"llama-3-8b", 8030261248},
                                       {"llama-3-70b", 70553706496},
                                       {"llama-3.1-8b", 8030261248},
                                       {"llama-3.1-70b", 70553706496},
                                       {"llama-3.1-405b", 405853388800},
                                       {"llama-3.2-1b", 1235814400},
                                       {"llama-3.2-3b", 3212749824},
                                       {"tinyllama-1.1b", 1100048384},
                                       {"smollm2-135m", 134515008},
                                       {"smollm2-360m", 361821120},
                                       {"smollm2-1.7b", 1711376384},
                                       {"codellama-7b", 6738546688},
                                       {"yi-6b", 6061035520},
                                       {"deepseek-llm-7b", 6910365696},
                                       {"mistral-7b-v0.1", 7241732096},
                                       {"mistral-7b-v0.2", 7241732096},
                                       {"mistral-7b-v0.3", 7248023552},
                                       {"mistral-nemo-12b", 12247782400},
                                       {"qwen2-0.5b", 494032768},
                                       {"qwen2-1.5b", 1543714304},
                                       {"qwen2-7b", 7615616512},
                                       {"qwen2.5-0.5b", 494032768},
                                       {"qwen2.5-1.5b", 1543714304},
                                       {"qwen2.5-3b", 3085938688},
                                       {"qwen2.5-7b", 7615616512},
                                       {"qwen2.5-14b", 14770033664},
                                       {"qwen2.5-32b", 32763876352},
                                       {"qwen2.5-72b", 72706203648},
                                       {"qwen3-0.6b", 596049920},
                                       {"qwen3-1.7b", 1720574976},
                                       {"qwen3-4b", 4022468096},
                                       {"qwen3-8b", 8190735360},
                                       {"qwen3-14b", 14768307200},
                                       {"qwen3-32b", 32762123264},
                                       {"gemma-2b", 2506172416},
                                       {"gemma-7b", 8537680896},
                                       {"gemma-3-270m", 268098176},
                                       {"gemma-3-1b", 999885952},
                                       {"gemma-3-4b", 3880263168},
                                       {"gemma-3-12b", 11766034176},
                                       {"gemma-3-27b", 27009346304},
                                       {"gemma-2-2b", 2614341888},
                                       {"gemma-2-9b", 9241705984},
                                       {"gemma-2-27b", 27227128320},
                                       {"phi-3-mini-4k", 3821079552},
                                       {"phi-3-medium-4k", 13960238080},
                                       {"phi-3.5-mini", 3821079552},
                                       {"phi-4", 14659507200},
                                       {"phi-4-mini", 3836021760},
                                       {"mixtral-8x7b", 46702792704},
                                       {"mixtral-8x22b", 140620634112},
                                       {"mixtral-8x22b-instruct", 140630071296},
                                       {"qwen1.5-moe-a2.7b", 14315784192},
                                       {"qwen2-57b-a14b", 57408658944},
                                       {"qwen3-30b-a3b", 30532122624},
                                       {"qwen3-coder-30b-a3b", 30532122624},
                                       {"qwen3-235b-a22b", 235093634560}}));
}

ModelSpec small(Kin kin, json::object config) {
  for (const auto& [key, value] : std::map<std::string, std::int64_t>{{"hidden_size", 12},
                                                                      {"intermediate_size", 20},
                                                                      {"num_hidden_layers", 2},
                                                                      {"num_attention_heads", 3},
                                                                      {"num_key_value_heads", 1},
                                                                      {"vocab_size", 7}}) {
    if (!config.contains(key)) config[key] = value;
  }
  Problems problems("config.json");
  std::vector<std::string> warnings;
  auto spec = llama::read(kin, config, "", problems, warnings);
  problems.throw_if_any();
  return spec.value();
}

TEST(LlamaParameters, StartAsHuggingFaces) {
  const ModelSpec spec = small(Kin::qwen2, {{"initializer_range", 0.5}});
  const ModelParameters parameters = llama::parameters(spec);
  const ModelNames names(parameters);
  const auto initial = [&](const char* name) {
    return parameters.tensors.at(names.tensor(name)).initial;
  };

  EXPECT_EQ(initial("model.embed_tokens.weight"), (InitialValue{.stddev = 0.5}));
  EXPECT_EQ(initial("model.layers.1.self_attn.o_proj.weight"), (InitialValue{.stddev = 0.5}));
  EXPECT_EQ(initial("model.layers.1.self_attn.q_proj.bias"), InitialValue{});
  EXPECT_EQ(initial("model.layers.0.input_layernorm.weight"), (InitialValue{.constant = 1}));
  EXPECT_EQ(initial("lm_head.weight"), (InitialValue{.stddev = 0.5}));
}

TEST(LlamaParameters, HooksAfterBackwardSeeNoModuleOfTokensPositionsOrKeywords) {
  std::vector<std::string> without;
  for (const auto& module : llama::parameters(small(Kin::llama, {})).modules) {
    if (!module.input_has_gradient) without.push_back(module.class_name);
  }

  EXPECT_THAT(without, ElementsAre("LlamaForCausalLM", "LlamaModel", "Embedding", "LlamaAttention",
                                   "LlamaAttention", "LlamaRotaryEmbedding"));
}

// 12 = heads * head_dim, 4 of a key; V h counts once.
TEST(LlamaTrainingFlops, CountSixPerMatmulWeightAndWhatQueriesSee) {
  constexpr double kWeights = 2 * (2 * 12.0 * (12 + 4) + 3 * 12 * 20) + 7 * 12;
  const ModelSpec all = small(Kin::mistral, {{"sliding_window", nullptr}});
  const ModelSpec windowed = small(Kin::mistral, {{"sliding_window", 8}});

  EXPECT_DOUBLE_EQ(llama::training_flops(all, 100, 32), 100 * (6 * kWeights + 12 * 2 * 12 * 32.0));
  EXPECT_DOUBLE_EQ(llama::training_flops(windowed, 100, 32),
                   100 * (6 * kWeights + 12 * 2 * 12 * 8.0));
  EXPECT_DOUBLE_EQ(llama::training_flops(windowed, 100, 4),
                   100 * (6 * kWeights + 12 * 2 * 12 * 4.0));
}

TEST(LlamaTrainingFlops, CountAClassifiersScoreForEveryToken) {
  ModelSpec spec = small(Kin::llama, {{"num_labels", 5}});
  const double language = llama::training_flops(spec, 1, 4);

  spec.task = Task::sequence_classification;

  EXPECT_DOUBLE_EQ(llama::training_flops(spec, 1, 4), language - 6 * (7 - 5) * 12.0);
}

}  // namespace
}  // namespace dstune::llama_parameters_test
