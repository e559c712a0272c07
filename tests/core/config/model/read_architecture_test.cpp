#include "core/config/model/read_architecture.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::read_architecture_test {
namespace {

using testing::HasSubstr;
using testing_support::Faults;
using testing_support::faults_in;

struct Result {
  std::optional<ModelSpec> spec;
  ModelRemarks remarks;
  Faults faults;
};

Result read(const char* text) {
  Result result;
  Problems problems("config.json");
  result.spec =
      read_model_object(json::parse(text).as_object(), "m", "/model", problems, result.remarks);
  result.faults = faults_in(problems);
  return result;
}

TEST(ReadArchitecture, TakesTheTaskOfAClassAndSaysSo) {
  const auto result =
      read(R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"]})");

  ASSERT_TRUE(result.spec);
  EXPECT_EQ(result.spec->task, Task::sequence_classification);
  EXPECT_EQ(result.remarks.task_note,
            "trained for sequence_classification, since the model's architectures say "
            "BertForSequenceClassification; dstune.task sets another task");
}

TEST(ReadArchitecture, SaysNothingOfTheUsualTask) {
  EXPECT_EQ(
      read(R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})").remarks.task_note,
      "");
  EXPECT_EQ(read(R"({"model_type": "gpt2"})").remarks.task_note, "");
}

constexpr const char* kSees = R"({"model_type": "gemma3",
    "architectures": ["Gemma3ForConditionalGeneration"], "vision_config": {"hidden_size": 8},
    "text_config": {"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 2,
                    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
                    "intermediate_size": 128, "vocab_size": 512}})";

TEST(TextPart, OfAModelThatSeesIsTrained) {
  const auto result = read(kSees);

  EXPECT_EQ(result.faults, Faults{});
  ASSERT_TRUE(result.spec);
  EXPECT_EQ(result.spec->family, "gemma3_text");
  EXPECT_EQ(result.spec->task, Task::causal_lm);
  EXPECT_EQ(result.spec->hidden_size, 64);
  EXPECT_TRUE(result.remarks.warnings.empty());
  ASSERT_EQ(result.remarks.notes.size(), 1U);
  EXPECT_THAT(result.remarks.notes[0], HasSubstr("the language model of \"gemma3\" is trained"));
}

TEST(TextPart, HasFaultsWhereItStands) {
  EXPECT_EQ(read(R"({"model_type": "llava", "text_config": {"model_type": "llama",
                     "hidden_size": 0}})")
                .faults,
            Faults{"/model/text_config/hidden_size  is 0; accepted: an integer from 1 to 1000000"});
}

bool is_tied(const char* type, const char* beside, const char* inside) {
  const std::string text = concat(R"({"model_type": ")", type, "\"", beside,
                                  R"(, "text_config": {"model_type": "llama")", inside, "}}");
  const auto part = read_as(json::parse(text).as_object());
  const auto* const tie = part->config.if_contains("tie_word_embeddings");
  return tie != nullptr && tie->as_bool();
}

// As transformers builds them.
TEST(TextPart, IsTiedAsTheWholeModelIs) {
  constexpr const char* kTrue = R"(, "tie_word_embeddings": true)";
  constexpr const char* kFalse = R"(, "tie_word_embeddings": false)";

  EXPECT_TRUE(is_tied("llava", kFalse, kTrue));
  EXPECT_FALSE(is_tied("llava_next", kFalse, kTrue));
  EXPECT_TRUE(is_tied("llava_next", kTrue, kFalse));
  EXPECT_FALSE(is_tied("llava", kFalse, ""));
  EXPECT_FALSE(is_tied("vipllava", "", kTrue));
  EXPECT_TRUE(is_tied("mistral3", "", kTrue));
  EXPECT_FALSE(is_tied("mistral3", kFalse, kTrue));
}

TEST(TextPart, OfQwen3VlTurnsByOnePosition) {
  const auto result = read(R"({"model_type": "qwen3_vl", "tie_word_embeddings": false,
      "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
          "intermediate_size": 128, "vocab_size": 512, "rope_theta": 5000000,
          "rope_scaling": {"mrope_interleaved": true, "mrope_section": [4, 2, 2],
                           "rope_type": "default"}}})");

  EXPECT_EQ(result.faults, Faults{});
  ASSERT_TRUE(result.spec);
  EXPECT_EQ(result.spec->family, "qwen3");
  EXPECT_TRUE(result.remarks.warnings.empty());
}

constexpr const char* kQwenVl =
    R"({"model_type": "qwen2_5_vl", "hidden_size": 64, "vocab_size": 512,
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vision_start_token_id": 3, "image_token_id": 4, "video_token_id": 5,
    "rope_theta": 1000000.0, "vision_config": {"depth": 32}, "tie_word_embeddings": true,
    "rope_scaling": {"type": "mrope", "mrope_section": [4, 2, 2]}})";

TEST(TextPart, OfQwen2VlStandsAmongTheKeysOfTheWhole) {
  const auto result = read(kQwenVl);

  EXPECT_EQ(result.faults, Faults{});
  ASSERT_TRUE(result.spec);
  EXPECT_EQ(result.spec->family, "qwen2");
  EXPECT_EQ(result.spec->task, Task::causal_lm);
  EXPECT_TRUE(result.remarks.warnings.empty());
  EXPECT_EQ(result.remarks.notes.size(), 1U);
}

TEST(TextPart, WithOtherDefaultsMustSayItsSizes) {
  EXPECT_THAT(read(R"({"model_type": "qwen2_vl", "hidden_size": 64})").faults.at(0),
              HasSubstr("/model/model_type  is \"qwen2_vl\"; accepted: "));
}

TEST(Twin, IsReadAsItsFamilyWithItsOwnDefaults) {
  const auto result = read(R"({"model_type": "xlm-roberta", "max_position_embeddings": 514,
                               "architectures": ["XLMRobertaForMaskedLM"]})");

  EXPECT_EQ(result.faults, Faults{});
  ASSERT_TRUE(result.spec);
  EXPECT_EQ(result.spec->family, "roberta");
  EXPECT_EQ(result.spec->task, Task::masked_lm);
  EXPECT_EQ(result.spec->vocab_size, 30522);
  EXPECT_EQ(result.spec->max_positions, 512);
  ASSERT_EQ(result.remarks.notes.size(), 1U);
  EXPECT_THAT(result.remarks.notes[0], HasSubstr("xlm-roberta is trained as roberta"));
}

TEST(TextPart, OfAnotherModelIsRefusedByTheWholesName) {
  EXPECT_THAT(read(R"({"model_type": "grounding-dino", "text_config": {"model_type": "bert"}})")
                  .faults.at(0),
              HasSubstr("/model/model_type  is \"grounding-dino\"; accepted: "));
  EXPECT_THAT(
      read(R"({"model_type": "llava", "text_config": {"model_type": "mamba"}})").faults.at(0),
      HasSubstr("/model/model_type  is \"llava\"; accepted: "));
}

}  // namespace
}  // namespace dstune::read_architecture_test
