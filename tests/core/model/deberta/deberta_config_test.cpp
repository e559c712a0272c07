#include <optional>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/model/deberta/deberta.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::deberta_config_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

struct Read {
  std::optional<ModelSpec> spec;
  Faults faults;
  std::vector<std::string> warnings;
};

Read read(const char* text) {
  Problems problems("config.json");
  Read result;
  result.spec = deberta::read(json::parse(text).as_object(), "", problems, result.warnings);
  result.faults = faults_in(problems);
  return result;
}

TEST(ReadDeberta, AbsentKeysAreHuggingFacesDefaults) {
  const ModelSpec spec = *read("{}").spec;
  const deberta::DebertaSettings settings = deberta::settings_of(spec);

  EXPECT_EQ(spec.vocab_size, 128100);
  EXPECT_EQ(spec.hidden_size, 1536);
  EXPECT_EQ(spec.layer_norm_epsilon, 1e-7);
  EXPECT_EQ(spec.classifier_dropout, 0.1);
  EXPECT_TRUE(settings.position_biased_input);
  EXPECT_FALSE(settings.relative_attention);
  EXPECT_EQ(settings.scores(), 1);
  EXPECT_EQ(settings.embedding_size, 1536);
  EXPECT_EQ(settings.conv_kernel_size, 0);
  EXPECT_EQ(settings.pooler_activation, "gelu");
  EXPECT_TRUE(settings.loss_in_fp32);
  EXPECT_EQ(settings.common.pad_token, 0);
}

TEST(ReadDeberta, ReadsEveryKey) {
  const auto [spec, faults, warnings] =
      read(R"({"vocab_size": 50, "hidden_size": 12, "num_hidden_layers": 3,
               "num_attention_heads": 4, "attention_head_size": 3, "intermediate_size": 20,
               "embedding_size": 6, "hidden_act": "relu", "hidden_dropout_prob": 0.2,
               "attention_probs_dropout_prob": 0.3, "cls_dropout": 0.4,
               "max_position_embeddings": 64, "type_vocab_size": 5, "layer_norm_eps": 1e-6,
               "initializer_range": 0.1, "pad_token_id": null, "num_labels": 7,
               "problem_type": "single_label_classification", "position_biased_input": false,
               "relative_attention": true, "max_relative_positions": 32, "position_buckets": 16,
               "pos_att_type": "P2C | c2p", "share_att_key": true, "norm_rel_ebd": "layer_norm",
               "conv_kernel_size": 5, "conv_groups": 1, "conv_act": "gelu",
               "pooler_hidden_size": 12, "pooler_hidden_act": "tanh", "pooler_dropout": 0,
               "legacy": true})");

  EXPECT_EQ(faults, Faults{});
  EXPECT_EQ(warnings, std::vector<std::string>{});
  const deberta::DebertaSettings settings = deberta::settings_of(*spec);
  EXPECT_EQ(spec->embedding_dropout, 0.2);
  EXPECT_EQ(spec->attention_dropout, 0.3);
  EXPECT_EQ(spec->classifier_dropout, 0.4);
  EXPECT_EQ(settings.common.type_vocab_size, 5);
  EXPECT_EQ(settings.common.num_labels, 7);
  EXPECT_EQ(settings.embedding_size, 6);
  EXPECT_FALSE(settings.position_biased_input);
  EXPECT_EQ(settings.scores(), 3);
  EXPECT_EQ(settings.span(), 16);
  EXPECT_EQ(settings.most_distance, 32);
  EXPECT_TRUE(settings.share_att_key);
  EXPECT_TRUE(settings.norm_rel_ebd);
  EXPECT_EQ(settings.conv_kernel_size, 5);
  EXPECT_EQ(settings.conv_activation, "gelu");
  EXPECT_EQ(settings.pooler_activation, "tanh");
  EXPECT_FALSE(settings.loss_in_fp32);
}

TEST(ReadDeberta, RelativePositionsReachAsFarAsPositionsUnlessTheyHaveALimit) {
  const auto span = [](const char* text) { return deberta::settings_of(*read(text).spec).span(); };

  EXPECT_EQ(span(R"({"max_relative_positions": -1, "position_buckets": -1})"), 512);
  EXPECT_EQ(span(R"({"max_relative_positions": 100})"), 100);
}

TEST(ReadDeberta, RejectsContradictions) {
  EXPECT_EQ(read(R"({"num_attention_heads": 5})").faults,
            Faults{"/num_attention_heads  is 5, which does not divide hidden_size 1536"});
  EXPECT_EQ(
      read(R"({"relative_attention": true})").faults,
      Faults{"/pos_att_type  names none; accepted with relative_attention: c2p, p2c or both"});
  EXPECT_EQ(
      read(R"({"relative_attention": true, "pos_att_type": "c2p", "position_buckets": 1})").faults,
      Faults{"/position_buckets  is 1; accepted: an integer from 2 on, half of it below "
             "max_relative_positions - 1, 511"});
  EXPECT_EQ(
      read(R"({"attention_head_size": 32, "pooler_hidden_size": 8, "conv_kernel_size": 4})").faults,
      (Faults{"/attention_head_size  is 32; accepted: 64, hidden_size / num_attention_heads",
              "/pooler_hidden_size  is 8; accepted: 1536, hidden_size",
              "/conv_kernel_size  is 4; accepted: an odd integer, or 0: any other makes "
              "sequences shorter"}));
}

TEST(ReadDeberta, RejectsWhatIsNotModelled) {
  EXPECT_EQ(read(R"({"pos_att_type": "c2p|p2p", "conv_groups": 2, "pooler_dropout": 0.1,
                     "legacy": false})")
                .faults,
            (Faults{"/conv_groups  is 2; accepted: 1; groups of a convolution "
                    "are not modelled",
                    "/pooler_dropout  is 0.1; accepted: a number from 0 to 0; dropout before the "
                    "pooler is not modelled",
                    "/legacy  is false; accepted: true; the other head of masked tokens is not "
                    "modelled",
                    "/pos_att_type  is \"c2p|p2p\"; accepted: \"c2p|p2c\", one of the two, or a "
                    "list of them"}));
  EXPECT_EQ(read(R"({"relative_attention": true, "share_att_key": true, "pos_att_type": ["c2p"]})")
                .faults,
            Faults{"/pos_att_type  names one; accepted with share_att_key: c2p and p2c; "
                   "transformers projects for both and uses one, which is not modelled"});
}

TEST(ReadDeberta, WarnsOfKeysThatNoSuchModelHas) {
  EXPECT_EQ(
      read(R"({"position_bucket": 4})").warnings,
      std::vector<std::string>{"/position_bucket is not a key of DeBERTa and has no effect; did "
                               "you mean \"position_buckets\"?"});
}

}  // namespace
}  // namespace dstune::deberta_config_test
