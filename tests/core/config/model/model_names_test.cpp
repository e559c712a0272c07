#include "core/config/model/model_names.hpp"

#include <cstdlib>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/model/hub_cache.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/model/hub_names.hpp"
#include "core/train/families/families.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::model_names_test {
namespace {

using testing::HasSubstr;
using testing_support::Faults;
using testing_support::faults_in;
using testing_support::TemporaryDirectory;
using testing_support::write_file;

TEST(HubNames, HaveEachPresetOnceAndNoOther) {
  std::vector<std::string> presets;
  for (const HubNames& row : hub_names()) presets.emplace_back(row.preset);

  EXPECT_THAT(presets, testing::UnorderedElementsAreArray(model_presets()));
}

TEST(HubNames, AreNamesOfTheHubThatMeanOnePreset) {
  std::set<std::string_view> seen;
  for (const HubNames& row : hub_names()) {
    ASSERT_FALSE(row.each().empty()) << row.preset;
    for (const std::string_view name : row.each()) {
      EXPECT_TRUE(is_hub_name(name)) << name;
      EXPECT_TRUE(seen.insert(name).second) << name;
      EXPECT_EQ(find_hub_preset(name).preset, row.preset) << name;
    }
  }
  EXPECT_EQ(find_hub_preset("META-LLAMA/llama-3.1-8b").hub_name, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(find_hub_preset("meta-llama/Llama-3.1-9B").preset, "");
}

TEST(NearModels, AreSlipsOfThePen) {
  EXPECT_EQ(near_models("Qwen/Qwen2.5-7B-Instuct"), "; did you mean \"Qwen/Qwen2.5-7B-Instruct\"?");
  EXPECT_EQ(near_models("meta/Llama-3.1-8B"), "; did you mean \"meta-llama/Llama-3.1-8B\"?");
  EXPECT_EQ(near_models("Qwen2.5-7B-Instruct"), "; did you mean \"Qwen/Qwen2.5-7B-Instruct\"?");
  EXPECT_EQ(near_models("Qwen2.5-7B"), "; did you mean \"qwen2.5-7b\"?");
}

TEST(NearModels, AreOfTheSameFamilyWhereTheSizeIsUnknown) {
  EXPECT_THAT(near_models("Qwen/Qwen2.5-9B"),
              testing::AllOf(testing::StartsWith("; similar presets: \"Qwen/Qwen2.5-"),
                             testing::Not(HasSubstr("did you mean"))));
  EXPECT_EQ(near_models("nobody/strange-7b"), "");
}

std::int64_t hidden_size_of(const char* name, const std::string& folder) {
  Problems problems("config.json");
  ModelRemarks remarks;
  const auto spec = read_model_name(name, {folder}, "--model", problems, remarks);
  problems.throw_if_any();
  return spec->hidden_size;
}

/// The cache of the hub is `folder` alone.
void set_cache(const std::string& folder) {
  setenv("HF_HUB_CACHE", folder.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
}

void cache_model(const TemporaryDirectory& cache, const std::string& folder, const char* config) {
  write_file(cache / (folder + "/refs/main"), "0f3a");
  write_file(cache / (folder + "/snapshots/0f3a/config.json"), config);
}

TEST(ReadModelName, TakesAPresetByItsNameOnTheHub) {
  const TemporaryDirectory cache;
  set_cache(cache.path());
  Problems problems("config.json");
  ModelRemarks remarks;

  const auto spec =
      read_model_name("qwen/QWEN2.5-7b-instruct", {"."}, "--model", problems, remarks);

  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->name, "Qwen/Qwen2.5-7B-Instruct");
  EXPECT_EQ(remarks.source, "preset qwen2.5-7b");
  EXPECT_EQ(make_model_parameters(*spec).total(), 7'615'616'512);
}

TEST(ReadModelName, SaysOfAPresetThatItLeavesOutTheVisionParts) {
  const TemporaryDirectory cache;
  set_cache(cache.path());
  Problems problems("config.json");
  ModelRemarks text;
  ModelRemarks with_vision;

  read_model_name("google/gemma-3-1b-it", {"."}, "--model", problems, text);
  read_model_name("google/gemma-3-4b-it", {"."}, "--model", problems, with_vision);

  EXPECT_EQ(text.notes, std::vector<std::string>{});
  EXPECT_THAT(with_vision.notes,
              testing::ElementsAre(testing::StartsWith(
                  "only the language model of \"google/gemma-3-4b-it\" is trained, a "
                  "\"gemma3_text\" on text")));
}

TEST(ReadModelName, PrefersTheCacheOfTheHubToAPreset) {
  const TemporaryDirectory cache;
  set_cache(cache.path());
  cache_model(cache, "models--Qwen--Qwen2.5-7B", R"({"model_type": "qwen2", "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 2})");
  Problems problems("config.json");
  ModelRemarks remarks;

  const auto spec = read_model_name("qwen/qwen2.5-7b", {"."}, "--model", problems, remarks);

  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->hidden_size, 64);
  EXPECT_EQ(spec->name, "Qwen/Qwen2.5-7B");
  EXPECT_EQ(remarks.source, cache / "models--Qwen--Qwen2.5-7B/snapshots/0f3a/config.json");
}

TEST(ReadModelName, PrefersAFolderToAnyName) {
  const TemporaryDirectory cache;
  set_cache(cache.path());
  const TemporaryDirectory directory;
  write_file(directory / "gpt2/config.json", R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2})");
  write_file(directory / "Qwen/Qwen2.5-7B/config.json",
             R"({"model_type": "gpt2", "n_embd": 4, "n_head": 2})");

  EXPECT_EQ(hidden_size_of("gpt2", directory.path()), 8);
  EXPECT_EQ(hidden_size_of("Qwen/Qwen2.5-7B", directory.path()), 4);
}

TEST(ReadModelName, SaysHowAnUnknownModelOfTheHubIsBrought) {
  const TemporaryDirectory cache;
  set_cache(cache.path());
  Problems problems("config.json");

  ModelRemarks remarks;
  EXPECT_FALSE(read_model_name("Qwen/Qwen2.5-7B-Instuct", {"."}, "--model", problems, remarks));

  EXPECT_EQ(
      faults_in(problems),
      Faults{concat("--model  is \"Qwen/Qwen2.5-7B-Instuct\", neither a file nor a preset, and the "
                    "cache of Hugging Face's hub (",
                    cache.path(),
                    ") has no config.json for it; did you mean \"Qwen/Qwen2.5-7B-Instruct\"? "
                    "accepted: a preset or its name on the hub (dstune-mpi --list-models), "
                    "or the path of a Hugging Face config.json; `hf download "
                    "Qwen/Qwen2.5-7B-Instuct config.json` downloads it where there is a network")});
}

}  // namespace
}  // namespace dstune::model_names_test
