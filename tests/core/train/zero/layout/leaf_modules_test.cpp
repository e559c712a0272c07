#include "core/train/zero/layout/leaf_modules.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/families/families.hpp"

namespace dstune::leaf_modules_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Names = std::vector<std::string>;

/// Tensors of tiny sizes that can be added up by hand: h = 2, f = 8, V = 5, 3 positions.
ModelParameters parameters() {
  ModelSpec model;
  model.vocab_size = 5;
  model.max_positions = 3;
  model.hidden_size = 2;
  model.inner_size = 8;
  model.num_layers = 2;
  return make_model_parameters(model);
}

StepConfig with_threshold(std::int64_t threshold) {
  StepConfig config;
  config.stage = 3;
  config.module_granularity_threshold = threshold;
  return config;
}

Names leaves_of(const StepConfig& config) {
  const ModelParameters model = parameters();
  Names names;
  for (const std::size_t leaf : find_leaf_modules(config, model)) {
    names.push_back(model.modules[leaf].name);
  }
  return names;
}

// Attention has 4 h^2 + 4 h = 24 elements in 3 modules, the MLP 2 h f + f + h = 42 in 3, a block 74
// in 9, the transformer 168 in 22, all with the head's 10 once more 178 in 24.
TEST(LeafModules, AreThoseOfAtMostTheThresholdParentsFirst) {
  EXPECT_THAT(leaves_of(with_threshold(0)), IsEmpty());
  EXPECT_THAT(leaves_of(with_threshold(6)), IsEmpty());
  EXPECT_THAT(leaves_of(with_threshold(7)), ElementsAre(""));
}

// h = 2, f = 1 and 500 words: attention 24 / 3, the MLP 7 / 3, a block 39 / 9, the transformer
// 1049 / 13.
TEST(LeafModules, AreTheLargestThatFit) {
  ModelSpec spec;
  spec.vocab_size = 500;
  spec.max_positions = 3;
  spec.hidden_size = 2;
  spec.inner_size = 1;
  spec.num_layers = 1;
  const ModelParameters model = make_model_parameters(spec);
  const auto names = [&](std::int64_t threshold) {
    Names all;
    for (const std::size_t leaf : find_leaf_modules(with_threshold(threshold), model)) {
      all.push_back(model.modules[leaf].class_name);
    }
    return all;
  };

  EXPECT_THAT(names(1), IsEmpty());
  EXPECT_THAT(names(2), ElementsAre("GPT2MLP"));
  EXPECT_THAT(names(4), ElementsAre("GPT2Block"));
  EXPECT_THAT(names(8), ElementsAre("GPT2Block"));
}

TEST(LeafModules, AreChosenByClassNameOrSuffix) {
  StepConfig config = with_threshold(0);
  config.leaf_module.classes = {"transformers.models.gpt2.modeling_gpt2.GPT2MLP"};
  EXPECT_THAT(leaves_of(config), ElementsAre("transformer.h.0.mlp", "transformer.h.1.mlp"));

  config.leaf_module = {{"GPT2Block"}, {}, {}};
  EXPECT_THAT(leaves_of(config), ElementsAre("transformer.h.0", "transformer.h.1"));

  config.leaf_module = {{}, {"transformer.h.1.attn"}, {}};
  EXPECT_THAT(leaves_of(config), ElementsAre("transformer.h.1.attn"));

  config.leaf_module = {{}, {}, {"ln_2"}};
  EXPECT_THAT(leaves_of(config), ElementsAre("transformer.h.0.ln_2", "transformer.h.1.ln_2"));
}

/// Two layers, of which the second has experts.
ModelParameters with_experts() {
  ModelSpec spec;
  spec.family = "qwen3_moe";
  spec.num_layers = 2;
  spec.own = R"({"num_key_value_heads": 2, "head_dim": 2, "attention_bias": false,
                 "hidden_act": "silu", "mlp_bias": false, "tie_word_embeddings": true,
                 "rope_parameters": {},
                 "experts": {"count": 2, "chosen": 1, "inner_size": 4, "normalised": true,
                             "layers": [1]}})";
  return make_model_parameters(spec);
}

Names experts_of(const StepConfig& config) {
  const ModelParameters model = with_experts();
  Names names;
  for (const std::size_t leaf : find_leaf_modules(config, model)) {
    names.push_back(model.modules[leaf].name);
  }
  return names;
}

TEST(LeafModules, AreTheBlocksOfExpertsUnlessOtherClassesAreNamed) {
  StepConfig config = with_threshold(0);
  EXPECT_THAT(experts_of(config), ElementsAre("model.layers.1.mlp"));
  EXPECT_FALSE(names_leaf_modules(config));
  EXPECT_THAT(unsupported_leaf_modules(config, with_experts()), IsEmpty());

  config.leaf_module.names = {"model.layers.0"};
  EXPECT_THAT(experts_of(config), ElementsAre("model.layers.0", "model.layers.1.mlp"));

  config.leaf_module = {.classes = {}, .names = {}, .name_suffixes = {}, .default_classes = false};
  EXPECT_THAT(experts_of(config), IsEmpty());
}

TEST(LeafModules, NotModelledAreThoseThatNoGradientReaches) {
  StepConfig config = with_threshold(7);
  EXPECT_THAT(unsupported_leaf_modules(config, parameters()),
              ElementsAre("zero_optimization.stage3_module_granularity_threshold with "
                          "GPT2LMHeadModel as a leaf"));

  config = with_threshold(0);
  config.leaf_module.names = {"transformer.wpe"};
  EXPECT_THAT(unsupported_leaf_modules(config, parameters()),
              ElementsAre("zero_optimization.leaf_module with Embedding as a leaf"));

  config.leaf_module.names = {"lm_head"};
  EXPECT_THAT(unsupported_leaf_modules(config, parameters()),
              ElementsAre("zero_optimization.leaf_module with Linear as a leaf"));

  config.leaf_module.names = {"transformer.h.0", "transformer.drop"};
  EXPECT_THAT(unsupported_leaf_modules(config, parameters()), IsEmpty());
}

TEST(LeafModules, AreStageThreesAlone) {
  StepConfig config = with_threshold(7);
  config.stage = 2;

  EXPECT_THAT(unsupported_leaf_modules(config, parameters()), IsEmpty());
}

}  // namespace
}  // namespace dstune::leaf_modules_test
