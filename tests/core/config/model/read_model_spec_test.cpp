#include "core/config/model/read_model_spec.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/input/read_json.hpp"
#include "core/train/families/families.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::read_model_spec_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;
using testing_support::TemporaryDirectory;
using testing_support::write_file;

std::optional<ModelSpec> read_object(const char* text, Problems& problems) {
  std::vector<std::string> warnings;
  return read_model_object(json::parse(text).as_object(), "inline", "/model", problems, warnings);
}

std::optional<ModelSpec> read_name(const std::string& name, const std::vector<std::string>& folders,
                                   const char* where, Problems& problems) {
  ModelRemarks remarks;
  return read_model_name(name, {folders.begin(), folders.end()}, where, problems, remarks);
}

Faults faults_of_object(const char* text) {
  Problems problems("config.json");
  read_object(text, problems);
  return faults_in(problems);
}

/// Each in quotes.
std::string all_families() {
  std::string all;
  for (const Family& family : families()) {
    all += concat(all.empty() ? "" : ", ", "\"", family.model_type, "\"");
  }
  return all;
}

ModelSpec read_named(const std::string& name, const std::string& folder = ".") {
  Problems problems("config.json");
  const auto spec = read_name(name, {folder}, "--model", problems);
  problems.throw_if_any();
  return *spec;
}

TEST(ReadModelName, PresetsHaveThePublishedNumberOfParameters) {
  const auto total = [](const char* name) {
    return make_model_parameters(read_named(name)).total();
  };

  EXPECT_EQ(total("gpt2"), 124'439'808);
  EXPECT_EQ(total("gpt2-medium"), 354'823'168);
  EXPECT_EQ(total("gpt2-large"), 774'030'080);
  EXPECT_EQ(total("gpt2-xl"), 1'557'611'200);
}

TEST(ReadModelName, PresetsHaveTheDropoutOfTheirConfig) {
  const auto spec = read_named("gpt2-xl");

  EXPECT_EQ(spec.name, "gpt2-xl");
  EXPECT_EQ(spec.attention_dropout, 0.1);
  EXPECT_EQ(spec.head_size(), 64);
}

TEST(ReadModelName, ReadsAFileAndADirectory) {
  const TemporaryDirectory directory;
  write_file(directory / "small.json", R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2})");
  write_file(directory / "tiny-gpt/config.json",
             R"({"model_type": "gpt2", "n_embd": 4, "n_head": 2})");

  EXPECT_EQ(read_named("small.json", directory.path()).hidden_size, 8);
  EXPECT_EQ(read_named("small.json", directory.path()).name, "small");
  EXPECT_EQ(read_named("tiny-gpt", directory.path()).hidden_size, 4);
  EXPECT_EQ(read_named("tiny-gpt/config.json", directory.path()).name, "tiny-gpt");
}

TEST(ReadModelName, SearchesFoldersInTurn) {
  const TemporaryDirectory first;
  const TemporaryDirectory second;
  write_file(second / "m.json", R"({"model_type": "gpt2", "n_layer": 2})");
  Problems problems("config.json");

  const auto spec = read_name("m.json", {first.path(), second.path()}, "--model", problems);

  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->num_layers, 2);
}

TEST(ReadModelName, NamesThePresetsIfThereIsNothingOfThatName) {
  Problems problems("config.json");

  EXPECT_FALSE(read_name("gpt2-mediun", {"."}, "--model", problems));

  EXPECT_EQ(faults_in(problems),
            Faults{"--model  is \"gpt2-mediun\", neither a preset nor a file; did you mean "
                   "\"gpt2-medium\"? accepted: a preset or its name on the hub (dstune-mpi "
                   "--list-models), or the path of a Hugging Face config.json"});
}

TEST(ReadModelName, SuggestsNoOtherModel) {
  const auto fault_of = [](const char* name) {
    Problems problems("config.json");
    read_name(name, {"."}, "--model", problems);
    return faults_in(problems).at(0);
  };

  EXPECT_THAT(fault_of("bart-base-uncased"), testing::Not(testing::HasSubstr("did you mean")));
  EXPECT_THAT(fault_of("gpt3"), testing::Not(testing::HasSubstr("did you mean")));
  EXPECT_THAT(fault_of("llama-3.2-2b"), testing::Not(testing::HasSubstr("did you mean")));
  EXPECT_THAT(fault_of("GPT2"), testing::HasSubstr("did you mean \"gpt2\"?"));
}

TEST(ReadModelName, PutsTheFileInFrontOfItsFaults) {
  const TemporaryDirectory directory;
  const std::string path = directory / "m.json";
  write_file(path, R"({"model_type": "gpt2", "n_embd": 0, "n_layer": 2, "n_layer": 3})");
  Problems problems("config.json");

  EXPECT_FALSE(read_name("m.json", {directory.path()}, "/dstune/model", problems));

  EXPECT_EQ(faults_in(problems),
            (Faults{path + "#/n_layer  is given more than once; keep one of them",
                    path + "#/n_embd  is 0; accepted: an integer from 1 to 1000000"}));
}

TEST(ReadModelName, RejectsFilesThatHoldNoModel) {
  const TemporaryDirectory directory;
  write_file(directory / "list.json", "[]");
  write_file(directory / "broken.json", "{\n");
  Problems problems("config.json");

  EXPECT_FALSE(read_name("list.json", {directory.path()}, "--model", problems));
  EXPECT_FALSE(read_name("broken.json", {directory.path()}, "--model", problems));

  EXPECT_EQ(faults_in(problems),
            (Faults{directory / "list.json" + ": file  is an empty list; accepted: an object",
                    directory / "broken.json" + ": line 2, column 1  ends too early: a bracket or "
                                                "quote is still open"}));
}

TEST(ReadModelObject, TakesHuggingFaceDefaultsForAbsentKeys) {
  Problems problems("config.json");

  const auto spec = read_object(R"({"model_type": "gpt2"})", problems);

  ASSERT_TRUE(spec);
  EXPECT_EQ(make_model_parameters(*spec).total(), 124'439'808);
  EXPECT_EQ(spec->layer_norm_epsilon, 1e-5);
  EXPECT_EQ(spec->embedding_dropout, 0.1);
}

TEST(ReadModelObject, ReadsEveryKey) {
  Problems problems("config.json");

  const auto spec = read_object(
      R"({"model_type": "gpt2", "vocab_size": 100, "n_positions": 64, "n_embd": 16, "n_layer": 3, "n_head": 4,
          "n_inner": 40, "layer_norm_epsilon": 1e-6, "initializer_range": 0.01,
          "embd_pdrop": 0, "attn_pdrop": 0.2, "resid_pdrop": 0.3})",
      problems);

  EXPECT_EQ(spec, (ModelSpec{"gpt2", "inline", 100, 64, 16, 3, 4, 40, 1e-6, 0.01, 0, 0.2, 0.3}));
}

TEST(ReadModelObject, TakesFourTimesTheWidthForInnerNull) {
  Problems problems("config.json");

  const auto spec = read_object(
      R"({"model_type": "gpt2", "n_embd": 16, "n_head": 2, "n_inner": null})", problems);

  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->inner_size, 64);
}

TEST(ReadModelObject, TakesTheGeneralNamesOfHuggingFace) {
  Problems problems("config.json");

  const auto spec = read_object(
      R"({"model_type": "gpt2", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1,
          "max_position_embeddings": 32})",
      problems);

  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->hidden_size, 16);
  EXPECT_EQ(spec->max_positions, 32);
}

TEST(ReadModelObject, IgnoresOtherKeys) {
  EXPECT_EQ(
      faults_of_object(
          R"({"model_type": "gpt2", "n_ctx": 1024, "architectures": ["GPT2LMHeadModel"], "x": null})"),
      Faults{});
}

TEST(ReadModelObject, WarnsOfKeysThatNoModelOfTheFamilyHas) {
  Problems problems("config.json");
  std::vector<std::string> warnings;
  const auto object = json::parse(
      R"({"model_type": "gpt2", "n_layers": 2, "n_ctx": 8, "torch_dtype": "float32", "zz": 1})");

  const auto spec = read_model_object(object.as_object(), "m", "/model", problems, warnings);

  ASSERT_TRUE(spec);
  EXPECT_EQ(warnings, (std::vector<std::string>{
                          "/model/n_layers is not a key of GPT-2 and has no effect; did you mean "
                          "\"n_layer\"?",
                          "/model/zz is not a key of GPT-2 and has no effect"}));
}

TEST(ReadModelObject, SaysWhichHeadIsNotModelled) {
  Problems problems("config.json");
  std::vector<std::string> warnings;
  const auto object =
      json::parse(R"({"model_type": "bert", "architectures": ["BertForTokenClassification"]})");

  const auto spec = read_model_object(object.as_object(), "m", "/model", problems, warnings);

  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->task, Task::masked_lm);
  EXPECT_EQ(warnings, (std::vector<std::string>{
                          "/model/architectures has \"BertForTokenClassification\", whose head is "
                          "not modelled for bert: trained for masked_lm instead"}));
}

TEST(ReadModelObject, FoldsItsWarnings) {
  json::object object{{"model_type", "gpt2"}};
  for (int i = 0; i < 1000; ++i) object["strange" + std::to_string(i)] = 1;
  Problems problems("config.json");
  std::vector<std::string> warnings;

  read_model_object(object, "inline", "/model", problems, warnings);

  EXPECT_EQ(warnings,
            Faults{"/model/* is not a key of GPT-2 and has no effect (1000 keys: strange0, "
                   "strange1, strange2, ...)"});
}

TEST(ReadModelName, PutsTheFileInFrontOfItsWarnings) {
  const TemporaryDirectory directory;
  write_file(directory / "m.json", R"({"model_type": "gpt2", "n_layers": 2})");
  Problems problems("config.json");
  ModelRemarks remarks;

  ASSERT_TRUE(read_model_name("m.json", {directory.path()}, "--model", problems, remarks));

  const auto& warnings = remarks.warnings;
  EXPECT_EQ(remarks.source, directory / "m.json");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].rfind(directory / "m.json" + "#/n_layers is not a key", 0), 0U)
      << warnings[0];
}

TEST(ReadModelName, NamesAModelSoThatItCanBePrinted) {
  const TemporaryDirectory directory;
  write_file(directory / "a\x1B\xFF.json", R"({"model_type": "gpt2"})");

  EXPECT_EQ(read_named("a\x1B\xFF.json", directory.path()).name, "a\\x1B\\xFF");
}

TEST(ReadModelObject, KeepsWhatOnlyTheFamilyAsksAbout) {
  Problems problems("config.json");

  const auto spec = read_object(
      R"({"model_type": "gpt2", "activation_function": "relu", "scale_attn_weights": true,
          "scale_attn_by_inverse_layer_idx": true, "tie_word_embeddings": false})",
      problems);

  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->own, R"({"activation_function":"relu","scale_attn_by_inverse_layer_idx":true,)"
                       R"("tie_word_embeddings":false})");
}

TEST(ReadModelObject, NeedsItsFamily) {
  EXPECT_EQ(faults_of_object(R"({"n_embd": 16})"),
            Faults{"/model/model_type  is missing; accepted: " + all_families()});
}

TEST(ReadModelObject, RejectsOtherFamiliesWithoutReadingOn) {
  EXPECT_EQ(faults_of_object(R"({"model_type": "rwkv_world", "n_embd": -1})"),
            Faults{"/model/model_type  is \"rwkv_world\"; accepted: " + all_families()});
  EXPECT_EQ(faults_of_object(R"({"model_type": "bart"})"),
            Faults{"/model/model_type  is \"bart\"; accepted: " + all_families()});
  EXPECT_EQ(faults_of_object(R"({"model_type": "gpt_neo_x"})"),
            Faults{"/model/model_type  is \"gpt_neo_x\"; did you mean \"gpt_neox\"? accepted: " +
                   all_families()});
}

TEST(ReadModelObject, RejectsVariantsThatAreNotTrained) {
  EXPECT_EQ(
      faults_of_object(
          R"({"model_type": "gpt2", "activation_function": "mish", "reorder_and_upcast_attn": true,
                    "add_cross_attention": true, "resid_pdrop": 1})"),
      (Faults{"/model/activation_function  is \"mish\"; accepted: \"gelu\", \"gelu_accurate\", "
              "\"gelu_fast\", \"gelu_new\", \"gelu_pytorch_tanh\", \"quick_gelu\", \"relu\", "
              "\"sigmoid\", \"silu\", \"swish\", \"tanh\"; others keep other tensors for the "
              "backward pass, and are not modelled",
              "/model/reorder_and_upcast_attn  is true; accepted: false",
              "/model/add_cross_attention  is true; accepted: false",
              "/model/resid_pdrop  is 1; accepted: a number >= 0 and < 1"}));
}

TEST(ReadModelObject, RejectsWhatGptNeoxIsNotTrainedWith) {
  EXPECT_EQ(faults_of_object(
                R"({"model_type": "gpt_neox", "rope_scaling": {"type": "linear", "factor": 2}})"),
            (Faults{"/model/rope_scaling/type  is \"linear\"; accepted: \"default\"; scaled "
                    "rotary angles are not modelled",
                    "/model/rope_scaling/factor  is unknown"}));
  EXPECT_EQ(faults_of_object(R"({"model_type": "gpt_neox", "num_attention_heads": 7})"),
            Faults{"/model/num_attention_heads  is 7, which does not divide hidden_size 6144"});
  EXPECT_EQ(faults_of_object(R"({"model_type": "gpt_neox", "rotary_pct": 0.005})"),
            Faults{"/model/rotary_pct  is 0.005, 0 of the 96 columns of a head; accepted: what "
                   "rotates at least one pair of them"});
}

TEST(ReadModelObject, RejectsANumberThatNoDoubleHolds) {
  Problems problems("config.json");
  std::vector<std::string> warnings;
  const auto object = parse_config_json(R"({"model_type": "gpt_neox", "rotary_emb_base": 1e999})",
                                        "/model", problems);

  read_model_object(object->as_object(), "m", "/model", problems, warnings);

  EXPECT_EQ(faults_in(problems),
            (Faults{"/model/rotary_emb_base  is 1e999, too large for a number",
                    "/model/rotary_emb_base  is null; accepted: a number > 0"}));
}

TEST(ReadModelObject, RejectsWhatOptIsNotTrainedWith) {
  EXPECT_EQ(
      faults_of_object(R"({"model_type": "opt", "layerdrop": 0.1, "num_attention_heads": 5})"),
      (Faults{"/model/layerdrop  is 0.1; accepted: a number from 0 to 0; layers that are left "
              "out at random are not modelled"}));
  EXPECT_EQ(faults_of_object(R"({"model_type": "opt", "num_attention_heads": 5})"),
            Faults{"/model/num_attention_heads  is 5, which does not divide hidden_size 768"});
}

TEST(ReadModelObject, RejectsHeadsThatDoNotDivideTheWidth) {
  EXPECT_EQ(faults_of_object(R"({"model_type": "gpt2", "n_embd": 100})"),
            Faults{"/model/n_head  is 12, which does not divide n_embd 100"});
}

}  // namespace
}  // namespace dstune::read_model_spec_test
