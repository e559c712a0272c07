#include "core/model/model_spec.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "core/base/json.hpp"

namespace dstune::model_spec_test {
namespace {

TEST(ModelSpec, SurvivesItsTextForm) {
  ModelSpec spec;
  spec.family = "other";
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
  spec.classifier_dropout = 0.5;
  spec.task = Task::masked_lm;
  spec.own = R"({"rope_theta":1E4,"layers":["full","sliding"]})";

  EXPECT_EQ(model_spec_from_json(to_json(spec)), spec);
}

TEST(ModelSpec, ReadsAJournalFromBeforeFamiliesHadSettingsOfTheirOwn) {
  json::object object = to_json(ModelSpec{});
  object.erase("own");

  EXPECT_EQ(model_spec_from_json(object), ModelSpec{});
}

TEST(ModelSpec, WritesOfWhatFewModelsHaveOnlyWhatIsThere) {
  const json::object object = to_json(ModelSpec{});

  for (const char* key : {"task", "classifier_dropout", "own"}) {
    EXPECT_FALSE(object.contains(key)) << key;
  }
}

TEST(ModelSpec, RefusesATaskThatThereIsNot) {
  json::object object = to_json(ModelSpec{});
  object["task"] = "translation";

  EXPECT_THROW(model_spec_from_json(object), std::invalid_argument);
}

TEST(ModelSpec, RefusesAnObjectThatLacksAKey) {
  json::object object = to_json(ModelSpec{});
  object.erase("n_embd");

  EXPECT_THROW(model_spec_from_json(object), std::invalid_argument);
}

}  // namespace
}  // namespace dstune::model_spec_test
