#include "core/model/model_parameters.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::model_parameters_test {
namespace {

using testing::ElementsAre;

ModelParameters two_modules() {
  ModelBuilder builder;
  const std::size_t root = builder.add_module("", "Model", 0);
  const std::size_t table = builder.add_embedding("table", root, 5, 3, 0.5);
  builder.add_linear("out", "Linear", root, {3, 2}, 2, 0.25);
  builder.tie(builder.add_module("head", "Linear", root), 0);
  EXPECT_EQ(table, 1U);
  return builder.take();
}

TEST(ModelBuilder, ListsTensorsAsTheyAreRegistered) {
  const ModelParameters parameters = two_modules();

  ASSERT_EQ(parameters.tensors.size(), 3U);
  EXPECT_EQ(parameters.tensors[0].name, "table.weight");
  EXPECT_EQ(parameters.tensors[1].name, "out.weight");
  EXPECT_EQ(parameters.tensors[2].name, "out.bias");
  EXPECT_EQ(parameters.total(), 5 * 3 + 3 * 2 + 2);
  EXPECT_THAT(parameters.modules.back().parameters, ElementsAre(0U));
}

TEST(ModelBuilder, MatricesDecayAndVectorsDoNot) {
  const ModelParameters parameters = two_modules();

  EXPECT_TRUE(parameters.tensors[1].weight_decay);
  EXPECT_FALSE(parameters.tensors[2].weight_decay);
}

TEST(ModelBuilder, NoGradientComesToAnEmbeddingsInput) {
  const ModelParameters parameters = two_modules();

  EXPECT_FALSE(parameters.modules[1].input_has_gradient);
  EXPECT_TRUE(parameters.modules[2].input_has_gradient);
}

TEST(ModelNames, FindModulesAndTensors) {
  const ModelParameters parameters = two_modules();
  const ModelNames names(parameters);

  EXPECT_EQ(names.module(""), 0U);
  EXPECT_EQ(names.module("out"), 2U);
  EXPECT_EQ(names.tensor("out.bias"), 2U);
  EXPECT_THROW(names.module("nobody"), std::logic_error);
  EXPECT_THROW(names.tensor("out"), std::logic_error);
}

}  // namespace
}  // namespace dstune::model_parameters_test
