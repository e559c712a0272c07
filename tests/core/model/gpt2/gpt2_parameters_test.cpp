#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/gpt2/gpt2.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/families/families.hpp"
#include "tests/oracle/module_places.hpp"

namespace dstune::gpt2_parameters_test {
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

TEST(Gpt2Parameters, TotalsAreThoseOfThePublishedModels) {
  EXPECT_EQ(gpt2::parameters(make_spec(768, 12, 12)).total(), 124439808);
  EXPECT_EQ(gpt2::parameters(make_spec(1024, 24, 16)).total(), 354823168);
  EXPECT_EQ(gpt2::parameters(make_spec(1280, 36, 20)).total(), 774030080);
  EXPECT_EQ(gpt2::parameters(make_spec(1600, 48, 25)).total(), 1557611200);
}

TEST(Gpt2Parameters, StandInRegistrationOrder) {
  const ModelParameters parameters = gpt2::parameters(make_spec(768, 1, 12));

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

TEST(Gpt2Parameters, Conv1DWeightsAreStoredInByOut) {
  const ModelParameters parameters = gpt2::parameters(make_spec(768, 1, 12));

  EXPECT_THAT(parameters.tensors[4].shape, ElementsAre(768, 2304));
  EXPECT_THAT(parameters.tensors[12].shape, ElementsAre(3072, 768));
}

TEST(Gpt2Parameters, HeadIsTiedToTheTokenEmbedding) {
  const ModelParameters parameters = gpt2::parameters(make_spec(768, 2, 12));

  EXPECT_EQ(parameters.modules.back().name, "lm_head");
  EXPECT_THAT(parameters.modules.back().parameters, ElementsAre(0U));
}

TEST(Gpt2Parameters, ModulesAreThoseOfHuggingFaceInRegistrationOrder) {
  const ModelParameters parameters = gpt2::parameters(make_spec(768, 1, 12));

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

TEST(Gpt2Parameters, AModuleContainsWhatFollowsItUntilItsSibling) {
  const ModelParameters parameters = gpt2::parameters(make_spec(768, 2, 12));
  const std::size_t mlp = module_places::in_block(1, Place::mlp);

  EXPECT_EQ(parameters.end_of(0), parameters.modules.size());
  EXPECT_EQ(parameters.end_of(mlp), module_places::ln_f(2));
  EXPECT_EQ(parameters.end_of(module_places::kWte), module_places::kWpe);
  EXPECT_THAT(parameters.tensors_within(mlp), ElementsAre(22U, 23U, 24U, 25U));
  EXPECT_EQ(parameters.tensors_within(0).size(), parameters.tensors.size());  // the tied one once
}

TEST(ModulePlaces, AreWhereTheModulesStand) {
  const ModelParameters parameters = gpt2::parameters(make_spec(768, 2, 12));
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

TEST(Gpt2Parameters, OnlyTokenNumbersGoIntoTheEmbeddingsAndWhatHoldsThem) {
  const ModelParameters parameters = gpt2::parameters(make_spec(768, 1, 12));

  std::vector<std::string> without;
  for (const auto& module : parameters.modules) {
    if (!module.input_has_gradient) without.push_back(module.class_name);
  }

  EXPECT_THAT(without, ElementsAre("GPT2LMHeadModel", "GPT2Model", "Embedding", "Embedding"));
}

TEST(Gpt2Parameters, OnlyMatricesDecay) {
  for (const auto& tensor : gpt2::parameters(make_spec(768, 2, 12)).tensors) {
    EXPECT_EQ(tensor.weight_decay, tensor.shape.size() == 2) << tensor.name;
  }
}

// GPT2PreTrainedModel._init_weights of Hugging Face.
TEST(Gpt2Parameters, StartAsHuggingFaces) {
  ModelSpec spec = make_spec(768, 8, 12);
  spec.initializer_range = 0.02;
  const ModelParameters parameters = gpt2::parameters(spec);
  const ModelNames names(parameters);
  const auto initial = [&](const char* name) {
    return parameters.tensors.at(names.tensor(name)).initial;
  };

  EXPECT_EQ(initial("transformer.wpe.weight"), (InitialValue{.stddev = 0.02}));
  EXPECT_EQ(initial("transformer.h.7.ln_1.weight"), (InitialValue{.constant = 1}));
  EXPECT_EQ(initial("transformer.h.7.mlp.c_fc.weight"), (InitialValue{.stddev = 0.02}));
  EXPECT_EQ(initial("transformer.h.7.mlp.c_fc.bias"), InitialValue{});
  EXPECT_EQ(initial("transformer.h.7.attn.c_proj.weight"), (InitialValue{.stddev = 0.02 / 4}));
  EXPECT_EQ(initial("transformer.h.7.mlp.c_proj.weight"), (InitialValue{.stddev = 0.02 / 4}));
}

// Written out for gpt2: per layer 12 h^2 matmul weights, the head V h, attention 12 L h s.
TEST(Gpt2TrainingFlops, CountsSixPerMatmulWeightAndTheFullAttention) {
  constexpr double kWeights = 12 * 12.0 * 768 * 768 + 50257.0 * 768;
  constexpr double kAttention = 12 * 12.0 * 768 * 1024;

  EXPECT_DOUBLE_EQ(gpt2::training_flops(make_spec(768, 12, 12), 1024, 1024),
                   1024 * (6 * kWeights + kAttention));
}

}  // namespace
}  // namespace dstune::gpt2_parameters_test
