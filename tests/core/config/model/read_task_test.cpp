#include "core/config/model/read_task.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/config/dstune_section.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::read_task_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

struct Read {
  ModelSpec model;
  Faults faults;
};

Read read(const char* text) {
  Problems problems("config.json");
  TuningConfig config;
  config.source = "c.json";
  read_dstune(json::parse(text), {}, config, problems);
  return {config.settings.model, faults_in(problems)};
}

TEST(ReadTask, IsTheFamilysFirstUnlessItIsGiven) {
  EXPECT_EQ(read(R"({"model": "gpt2"})").model.task, Task::causal_lm);
  EXPECT_EQ(read(R"({"model": "bert-base-uncased"})").model.task, Task::masked_lm);
  EXPECT_EQ(read(R"({"model": {"model_type": "roberta"}})").model.task, Task::masked_lm);
}

TEST(ReadTask, IsThatOfTheModelsArchitecture) {
  constexpr const char* kClassifier =
      R"({"model": {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}})";
  constexpr const char* kOverruled =
      R"({"task": "causal_lm",
          "model": {"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]}})";
  constexpr const char* kHeadless =
      R"({"model": {"model_type": "bert", "architectures": ["BertModel"]}})";

  EXPECT_EQ(read(kClassifier).model.task, Task::sequence_classification);
  EXPECT_EQ(read(kOverruled).model.task, Task::causal_lm);
  EXPECT_EQ(read(kHeadless).model.task, Task::masked_lm);
  EXPECT_EQ(read(R"({"model": {"model_type": "gpt2", "num_labels": 1,
                               "architectures": ["GPT2ForSequenceClassification"]}})")
                .faults,
            Faults{"/dstune/task  is missing, so it is the sequence_classification of the model's "
                   "architectures, but the model has num_labels 1, which is a regression; modelled "
                   "are 2 or more"});
}

TEST(ReadTask, TakesAnyOfTheFamilys) {
  const auto [model, faults] =
      read(R"({"model": "distilbert-base-uncased", "task": "sequence_classification"})");

  EXPECT_EQ(faults, Faults{});
  EXPECT_EQ(model.task, Task::sequence_classification);
}

TEST(ReadTask, RefusesWhatTheFamilyIsNotTrainedFor) {
  EXPECT_EQ(read(R"({"model": "gpt2", "task": "masked_lm"})").faults,
            Faults{"/dstune/task  is \"masked_lm\"; accepted for models of type "
                   "\"gpt2\": \"causal_lm\", \"sequence_classification\""});
  EXPECT_EQ(read(R"({"model": "bert-base-cased", "task": "causal_lm"})").faults,
            Faults{"/dstune/task  is \"causal_lm\"; accepted for models of type \"bert\": "
                   "\"masked_lm\", \"sequence_classification\""});
}

TEST(ReadTask, RefusesToClassifyWithoutClasses) {
  constexpr const char* kOneLabel =
      R"({"model": {"model_type": "gpt2", "num_labels": 1}, "task": "sequence_classification"})";
  constexpr const char* kSeveralAtOnce =
      R"({"model": {"model_type": "llama", "problem_type": "multi_label_classification"},
          "task": "sequence_classification"})";

  EXPECT_EQ(read(R"({"model": {"model_type": "gpt2", "num_labels": 1}})").faults, Faults{});
  EXPECT_EQ(read(kOneLabel).faults,
            Faults{"/dstune/task  is \"sequence_classification\", but the model has num_labels 1, "
                   "which is a regression; modelled are 2 or more"});
  EXPECT_EQ(read(kSeveralAtOnce).faults,
            Faults{"/dstune/task  is \"sequence_classification\", but the model's problem_type is "
                   "multi_label_classification, modelled is single_label_classification"});
}

TEST(ReadTask, RefusesOtherNames) {
  EXPECT_EQ(read(R"({"model": "bert-base-cased", "task": "mask_lm"})").faults,
            Faults{"/dstune/task  is \"mask_lm\"; did you mean \"masked_lm\"? accepted: "
                   "\"causal_lm\", \"masked_lm\", \"sequence_classification\", \"seq2seq_lm\""});
}

TEST(ReadTask, GivesTargetsALengthOfTheirOwn) {
  const auto [model, faults] = read(R"({"model": "t5-small", "target_sequence_length": 128})");

  EXPECT_EQ(faults, Faults{});
  EXPECT_EQ(model.target_tokens(512), 128);
  EXPECT_EQ(read(R"({"model": "t5-small"})").model.target_tokens(512), 512);
  EXPECT_EQ(
      read(R"({"model": "gpt2", "target_sequence_length": 128})").faults,
      Faults{"/dstune/target_sequence_length  is for models that make a sequence from another "
             "(seq2seq_lm), not for causal_lm"});
}

TEST(ReadTask, RefusesAttentionThatTakesNoBiasOfScores) {
  EXPECT_EQ(
      read(R"({"model": "t5-small", "attention": "flash"})").faults,
      Faults{"/dstune/attention  is \"flash\", which transformers does not have for models of "
             "type \"t5\": it takes no bias of scores; accepted: \"sdpa\", \"eager\""});
}

TEST(ReadTask, DropsTheClassifiersDropoutUnlessAskedFor) {
  EXPECT_EQ(read(R"({"model": "distilbert-base-cased"})").model.classifier_dropout, 0);
  EXPECT_EQ(read(R"({"model": "distilbert-base-cased", "dropout": true})").model.classifier_dropout,
            0.2);
}

}  // namespace
}  // namespace dstune::read_task_test
