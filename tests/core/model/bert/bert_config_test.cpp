#include <optional>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/model/bert/bert.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::bert_config_test {
namespace {

using bert::Variant;
using testing_support::Faults;
using testing_support::faults_in;

struct Read {
  std::optional<ModelSpec> spec;
  Faults faults;
  std::vector<std::string> warnings;
};

Read read(Variant kin, const char* text) {
  Problems problems("config.json");
  Read result;
  result.spec = bert::read(kin, json::parse(text).as_object(), "", problems, result.warnings);
  result.faults = faults_in(problems);
  return result;
}

TEST(ReadBert, AbsentKeysAreHuggingFacesDefaults) {
  const ModelSpec spec = *read(Variant::bert, "{}").spec;

  EXPECT_EQ(spec.vocab_size, 30522);
  EXPECT_EQ(spec.max_positions, 512);
  EXPECT_EQ(spec.num_layers, 12);
  EXPECT_EQ(spec.inner_size, 3072);
  EXPECT_EQ(spec.layer_norm_epsilon, 1e-12);
  EXPECT_EQ(spec.attention_dropout, 0.1);
  EXPECT_EQ(bert::settings_of(spec).activation, "gelu");
  EXPECT_EQ(bert::settings_of(spec).type_vocab_size, 2);
  EXPECT_EQ(bert::settings_of(spec).pad_token, 0);
  EXPECT_EQ(bert::settings_of(spec).num_labels, 2);
  EXPECT_EQ(read(Variant::roberta, "{}").spec->vocab_size, 50265);
  EXPECT_EQ(read(Variant::distilbert, "{}").spec->num_layers, 6);
}

TEST(ReadBert, ReadsEveryKey) {
  const auto [spec, faults, warnings] =
      read(Variant::bert, R"({"vocab_size": 50, "hidden_size": 12, "num_hidden_layers": 3,
                     "num_attention_heads": 4, "intermediate_size": 20, "hidden_act": "relu",
                     "hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3,
                     "classifier_dropout": 0.4, "max_position_embeddings": 64,
                     "type_vocab_size": 5, "layer_norm_eps": 1e-6, "initializer_range": 0.1,
                     "pad_token_id": null, "num_labels": 7, "problem_type": null,
                     "position_embedding_type": "absolute", "directionality": "bidi"})");

  EXPECT_EQ(faults, Faults{});
  EXPECT_EQ(warnings, std::vector<std::string>{});
  EXPECT_EQ(spec->num_heads, 4);
  EXPECT_EQ(spec->embedding_dropout, 0.2);
  EXPECT_EQ(spec->residual_dropout, 0.2);
  EXPECT_EQ(spec->attention_dropout, 0.3);
  EXPECT_EQ(spec->classifier_dropout, 0.4);
  EXPECT_EQ(spec->initializer_range, 0.1);
  const bert::Settings settings = bert::settings_of(*spec);
  EXPECT_EQ(settings.activation, "relu");
  EXPECT_EQ(settings.type_vocab_size, 5);
  EXPECT_EQ(settings.pad_token, std::nullopt);
  EXPECT_EQ(settings.num_labels, 7);
}

TEST(ReadBert, ClassifiersDropOutAsTheOthersUnlessTheyHaveARateOfTheirOwn) {
  EXPECT_EQ(read(Variant::bert, R"({"hidden_dropout_prob": 0.3})").spec->classifier_dropout, 0.3);
  EXPECT_EQ(read(Variant::bert, R"({"classifier_dropout": null})").spec->classifier_dropout, 0.1);
  EXPECT_EQ(read(Variant::distilbert, R"({"dropout": 0.3})").spec->classifier_dropout, 0.2);
}

TEST(ReadBert, RobertasPositionsBeginBehindThePaddingToken) {
  const ModelSpec spec = *[] {
    auto read_spec = read(Variant::roberta, R"({"max_position_embeddings": 514})").spec;
    read_spec->family = "roberta";
    return read_spec;
  }();

  EXPECT_EQ(spec.max_positions, 512);
  EXPECT_EQ(bert::first_position(spec), 2);
  EXPECT_EQ(
      read(Variant::roberta, R"({"pad_token_id": null})").faults,
      Faults{"/pad_token_id  is null; accepted: an integer, from which positions are counted"});
  EXPECT_EQ(read(Variant::roberta, R"({"max_position_embeddings": 3})").faults,
            Faults{"/max_position_embeddings  is 3; accepted: an integer from 4 on: positions "
                   "begin behind pad_token_id 1"});
}

TEST(ReadBert, LabelsAreCountedByTheirNames) {
  const char* const kThree = R"({"id2label": {"0": "a", "1": "b", "2": "c"}})";

  EXPECT_EQ(bert::settings_of(*read(Variant::distilbert, kThree).spec).num_labels, 3);
  EXPECT_EQ(read(Variant::bert, R"({"id2label": {"0": "a", "1": "b"}, "num_labels": 3})").faults,
            Faults{"/num_labels  is 3, but id2label has 2"});
  EXPECT_EQ(read(Variant::bert, R"({"id2label": {"0": "a"}})").faults,
            Faults{"/id2label  has 1 labels; accepted: 2 or more; a single label is a regression"});
}

TEST(ReadBert, RejectsContradictions) {
  EXPECT_EQ(read(Variant::bert, R"({"num_attention_heads": 5, "pad_token_id": 30522})").faults,
            (Faults{"/num_attention_heads  is 5, which does not divide hidden_size 768",
                    "/pad_token_id  is 30522; accepted: an integer below vocab_size 30522"}));
  EXPECT_EQ(read(Variant::distilbert, R"({"n_heads": 5})").faults,
            Faults{"/n_heads  is 5, which does not divide dim 768"});
}

TEST(ReadBert, RejectsWhatIsNotTrained) {
  EXPECT_EQ(read(Variant::bert, R"({"position_embedding_type": "relative_key", "is_decoder": true,
                                "add_cross_attention": true, "tie_word_embeddings": false,
                                "problem_type": "regression", "num_labels": 1})")
                .faults,
            (Faults{"/position_embedding_type  is \"relative_key\"; accepted: \"absolute\" or null",
                    "/is_decoder  is true; accepted: false",
                    "/add_cross_attention  is true; accepted: false",
                    "/tie_word_embeddings  is false; accepted: true",
                    "/problem_type  is \"regression\"; accepted: "
                    "\"single_label_classification\" or null",
                    "/num_labels  is 1; accepted: an integer from 2 to 1000000; a single label is "
                    "a regression"}));
  EXPECT_EQ(read(Variant::distilbert, R"({"sinusoidal_pos_embds": true})").faults,
            Faults{"/sinusoidal_pos_embds  is true; accepted: false"});
}

TEST(ReadBert, WarnsOfKeysThatNoSuchModelHas) {
  EXPECT_EQ(
      read(Variant::distilbert, R"({"n_layer": 3})").warnings,
      std::vector<std::string>{
          "/n_layer is not a key of DistilBERT and has no effect; did you mean \"n_layers\"?"});
}

}  // namespace
}  // namespace dstune::bert_config_test
