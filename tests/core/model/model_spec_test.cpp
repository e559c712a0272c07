#include "core/model/model_spec.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/module_places.hpp"

namespace dstune {
namespace {

using module_places::Place;
using testing::ElementsAre;

ModelSpec make_spec(std::int64_t hidden, std::int64_t layers, std::int64_t heads) {
  ModelSpec spec;
  spec.hidden_size = hidden;
  spec.inner_size = 4 * hidden;
  spec.num_layers = layers;
  spec.num_heads = heads;
  return spec;
}

TEST(ModelParameters, TotalsAreThoseOfThePublishedModels) {
  EXPECT_EQ(make_model_parameters(make_spec(768, 12, 12)).total(), 124439808);
  EXPECT_EQ(make_model_parameters(make_spec(1024, 24, 16)).total(), 354823168);
  EXPECT_EQ(make_model_parameters(make_spec(1280, 36, 20)).total(), 774030080);
  EXPECT_EQ(make_model_parameters(make_spec(1600, 48, 25)).total(), 1557611200);
}

TEST(ModelParameters, StandInRegistrationOrder) {
  const ModelParameters parameters = make_model_parameters(make_spec(768, 1, 12));

  std::vector<std::string> names;
  for (const auto& tensor : parameters.tensors) names.push_back(tensor.name);

  EXPECT_THAT(names,
              ElementsAre("transformer.wte.weight", "transformer.wpe.weight",
                          "transformer.h.0.ln_1.weight", "transformer.h.0.ln_1.bias",
                          "transformer.h.0.attn.c_attn.weight", "transformer.h.0.attn.c_attn.bias",
                          "transformer.h.0.attn.c_proj.weight", "transformer.h.0.attn.c_proj.bias",
                          "transformer.h.0.ln_2.weight", "transformer.h.0.ln_2.bias",
                          "transformer.h.0.mlp.c_fc.weight", "transformer.h.0.mlp.c_fc.bias",
                          "transformer.h.0.mlp.c_proj.weight", "transformer.h.0.mlp.c_proj.bias",
                          "transformer.ln_f.weight", "transformer.ln_f.bias"));
}

TEST(ModelParameters, Conv1DWeightsAreStoredInByOut) {
  const ModelParameters parameters = make_model_parameters(make_spec(768, 1, 12));

  EXPECT_THAT(parameters.tensors[4].shape, ElementsAre(768, 2304));
  EXPECT_THAT(parameters.tensors[12].shape, ElementsAre(3072, 768));
}

TEST(ModelParameters, HeadIsTiedToTheTokenEmbedding) {
  const ModelParameters parameters = make_model_parameters(make_spec(768, 2, 12));

  EXPECT_EQ(parameters.modules.back().name, "lm_head");
  EXPECT_THAT(parameters.modules.back().parameters, ElementsAre(0U));
}

TEST(ModelParameters, ModulesAreThoseOfHuggingFaceInRegistrationOrder) {
  const ModelParameters parameters = make_model_parameters(make_spec(768, 1, 12));

  std::vector<std::string> names;
  for (const auto& module : parameters.modules) names.push_back(module.name);

  EXPECT_THAT(names,
              ElementsAre("", "transformer", "transformer.wte", "transformer.wpe",
                          "transformer.drop", "transformer.h.0", "transformer.h.0.ln_1",
                          "transformer.h.0.attn", "transformer.h.0.attn.c_attn",
                          "transformer.h.0.attn.c_proj", "transformer.h.0.attn.resid_dropout",
                          "transformer.h.0.ln_2", "transformer.h.0.mlp", "transformer.h.0.mlp.c_fc",
                          "transformer.h.0.mlp.c_proj", "transformer.h.0.mlp.act",
                          "transformer.h.0.mlp.dropout", "transformer.ln_f", "lm_head"));
}

TEST(ModelParameters, AModuleContainsWhatFollowsItUntilItsSibling) {
  const ModelParameters parameters = make_model_parameters(make_spec(768, 2, 12));
  const std::size_t mlp = module_places::in_block(1, Place::mlp);

  EXPECT_EQ(parameters.end_of(0), parameters.modules.size());
  EXPECT_EQ(parameters.end_of(mlp), module_places::ln_f(2));
  EXPECT_EQ(parameters.end_of(module_places::kWte), module_places::kWpe);
  EXPECT_THAT(parameters.tensors_within(mlp), ElementsAre(22U, 23U, 24U, 25U));
  EXPECT_EQ(parameters.tensors_within(0).size(), parameters.tensors.size());  // the tied one once
  EXPECT_EQ(parameters.num_layers(), 2);
}

TEST(ModulePlaces, AreWhereTheModulesStand) {
  const ModelParameters parameters = make_model_parameters(make_spec(768, 2, 12));
  const auto name = [&](std::size_t module) { return parameters.modules.at(module).name; };

  EXPECT_EQ(name(module_places::kRoot), "");
  EXPECT_EQ(name(module_places::kTransformer), "transformer");
  EXPECT_EQ(name(module_places::kWte), "transformer.wte");
  EXPECT_EQ(name(module_places::kWpe), "transformer.wpe");
  EXPECT_EQ(name(module_places::kDrop), "transformer.drop");
  EXPECT_EQ(name(module_places::in_block(0, Place::block)), "transformer.h.0");
  EXPECT_EQ(name(module_places::in_block(1, Place::attn_c_proj)), "transformer.h.1.attn.c_proj");
  EXPECT_EQ(name(module_places::in_block(1, Place::dropout)), "transformer.h.1.mlp.dropout");
  EXPECT_EQ(name(module_places::ln_f(2)), "transformer.ln_f");
  EXPECT_EQ(name(module_places::lm_head(2)), "lm_head");
}

TEST(ModelParameters, OnlyTokenNumbersGoIntoTheEmbeddingsAndWhatHoldsThem) {
  const ModelParameters parameters = make_model_parameters(make_spec(768, 1, 12));

  std::vector<std::string> without;
  for (const auto& module : parameters.modules) {
    if (!module.input_has_gradient) without.push_back(module.class_name);
  }

  EXPECT_THAT(without, ElementsAre("GPT2LMHeadModel", "GPT2Model", "Embedding", "Embedding"));
}

TEST(ModelParameters, OnlyMatricesDecay) {
  for (const auto& tensor : make_model_parameters(make_spec(768, 2, 12)).tensors) {
    EXPECT_EQ(tensor.weight_decay, tensor.shape.size() == 2) << tensor.name;
  }
}

TEST(ModelSpec, SurvivesItsTextForm) {
  ModelSpec spec;
  spec.name = "mine";
  spec.vocab_size = 1;
  spec.max_positions = 2;
  spec.hidden_size = 3;
  spec.num_layers = 4;
  spec.num_heads = 5;
  spec.inner_size = 6;
  spec.layer_norm_epsilon = 1e-7;
  spec.initializer_range = 0.3;
  spec.embedding_dropout = 0.1;
  spec.attention_dropout = 0.2;
  spec.residual_dropout = 0.4;

  EXPECT_EQ(model_spec_from_json(to_json(spec)), spec);
}

TEST(ModelSpec, RefusesAnObjectThatLacksAKey) {
  json::object object = to_json(ModelSpec{});
  object.erase("n_embd");

  EXPECT_THROW(model_spec_from_json(object), std::invalid_argument);
}

// Written out for gpt2: per layer 12 h^2 matmul weights, the head V h, attention 12 L h s.
TEST(TrainingFlops, CountsSixPerMatmulWeightAndTheFullAttention) {
  constexpr double kWeights = 12 * 12.0 * 768 * 768 + 50257.0 * 768;
  constexpr double kAttention = 12 * 12.0 * 768 * 1024;

  EXPECT_DOUBLE_EQ(training_flops(make_spec(768, 12, 12), 1024, 1024),
                   1024 * (6 * kWeights + kAttention));
}

}  // namespace
}  // namespace dstune
