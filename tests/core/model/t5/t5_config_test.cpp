#include <optional>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/model/t5/t5.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::t5_config_test {
namespace {

using t5::T5Variant;
using testing_support::Faults;
using testing_support::faults_in;

struct Read {
  std::optional<ModelSpec> spec;
  Faults faults;
  std::vector<std::string> warnings;
};

Read read(const char* text, T5Variant variant = T5Variant::t5) {
  Problems problems("config.json");
  Read result;
  result.spec = t5::read(variant, json::parse(text).as_object(), "", problems, result.warnings);
  result.faults = faults_in(problems);
  return result;
}

TEST(ReadT5, AbsentKeysAreHuggingFacesDefaults) {
  const ModelSpec spec = *read("{}").spec;
  const t5::T5Settings settings = t5::settings_of(spec);

  EXPECT_EQ(spec.vocab_size, 32128);
  EXPECT_EQ(spec.num_layers, 6);
  EXPECT_EQ(spec.inner_size, 2048);
  EXPECT_EQ(spec.attention_dropout, 0.1);
  EXPECT_EQ(settings, t5::T5Settings{});
  EXPECT_EQ(read("{}", T5Variant::mt5).spec->vocab_size, 250112);
  EXPECT_EQ(read("{}", T5Variant::mt5).spec->num_heads, 6);
}

TEST(ReadT5, ReadsEveryKey) {
  const auto [spec, faults, warnings] = read(R"({"vocab_size": 50, "d_model": 12, "d_kv": 5,
      "d_ff": 20, "num_layers": 3, "num_decoder_layers": 2, "num_heads": 4, "dropout_rate": 0.2,
      "relative_attention_num_buckets": 16, "relative_attention_max_distance": 40,
      "layer_norm_epsilon": 1e-5, "initializer_factor": 0.5, "feed_forward_proj": "gated-silu",
      "tie_word_embeddings": false, "decoder_start_token_id": 3, "is_encoder_decoder": true,
      "n_positions": 512})");

  EXPECT_EQ(faults, Faults{});
  EXPECT_EQ(warnings, std::vector<std::string>{});
  EXPECT_EQ(spec->hidden_size, 12);
  EXPECT_EQ(spec->num_layers, 3);
  EXPECT_EQ(spec->initializer_range, 0.5);
  EXPECT_EQ(spec->embedding_dropout, 0.2);
  const t5::T5Settings expected{.head_size = 5,
                                .decoder_layers = 2,
                                .buckets = 16,
                                .max_distance = 40,
                                .activation = "silu",
                                .gated = true,
                                .tied = false,
                                .scales_output = false,
                                .start_token = 3};
  EXPECT_EQ(t5::settings_of(*spec), expected);
}

TEST(ReadT5, GatedGeluIsTheApproximation) {
  EXPECT_EQ(t5::settings_of(*read(R"({"feed_forward_proj": "gated-gelu"})").spec).activation,
            "gelu_new");
  EXPECT_EQ(t5::settings_of(*read(R"({"feed_forward_proj": "gelu"})").spec).activation, "gelu");
}

TEST(ReadT5, OnlyT5WithATiedHeadScalesWhatItReads) {
  EXPECT_TRUE(t5::settings_of(*read("{}").spec).scales_output);
  EXPECT_FALSE(t5::settings_of(*read("{}", T5Variant::mt5).spec).scales_output);
}

TEST(ReadT5, RefusesWhatContradicts) {
  EXPECT_EQ(
      read(R"({"relative_attention_max_distance": 16})").faults,
      Faults{"/relative_attention_max_distance  is 16; accepted: an integer above 16, half of "
             "relative_attention_num_buckets"});
  EXPECT_EQ(read(R"({"vocab_size": 9, "decoder_start_token_id": 9})").faults,
            Faults{"/decoder_start_token_id  is 9; accepted: an integer below vocab_size 9"});
  EXPECT_EQ(read(R"({"is_decoder": true})").faults.size(), 1U);
  EXPECT_EQ(read(R"({"d_modell": 8})").warnings,
            std::vector<std::string>{
                "/d_modell is not a key of T5 and has no effect; did you mean \"d_model\"?"});
}

// 2 tokens of a source, 3 of its target: h = 4, a = 6, f = 5, V = 7, one layer each.
TEST(ReadT5, FlopsAreOfBothSides) {
  ModelSpec spec = *read(R"({"vocab_size": 7, "d_model": 4, "d_kv": 3, "num_heads": 2, "d_ff": 5,
                             "num_layers": 1})")
                        .spec;
  spec.task = Task::seq2seq_lm;
  spec.target_length = 3;
  const double of_source = 4 * 24 + 2 * 20 + 2 * 24;
  const double of_target = 6 * 24 + 2 * 20 + 28;
  const double pairs = 4 + 9 + 6;

  EXPECT_EQ(t5::training_flops(spec, 10, 2),
            5 * (6 * (2 * of_source + 3 * of_target) + 12 * 6 * pairs));
}

}  // namespace
}  // namespace dstune::t5_config_test
