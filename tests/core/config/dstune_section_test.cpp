#include "core/config/dstune_section.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::dstune_section_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;
using testing_support::TemporaryDirectory;
using testing_support::write_file;

struct Read {
  TuningConfig config;
  bool model_known = false;
  Faults faults;
};

Read read(const char* text, const CommandLine& options = {}, const std::string& source = "c.json") {
  Problems problems("config.json");
  Read result;
  result.config.source = source;
  result.model_known = read_dstune(json::parse(text), options, result.config, problems);
  result.faults = faults_in(problems);
  return result;
}

TEST(ReadDstune, NeedsOnlyTheModel) {
  const auto [config, model_known, faults] = read(R"({"model": "gpt2"})");

  EXPECT_TRUE(model_known);
  EXPECT_EQ(faults, Faults{});
  EXPECT_EQ(config.settings.model.name, "gpt2");
  EXPECT_EQ(config.settings.sequence_length, 1024);
  EXPECT_EQ(config.settings.memory_limit, 0U);
  EXPECT_EQ(config.settings.backend, "auto");
  EXPECT_EQ(config.settings.warmup_steps, 1);
  EXPECT_EQ(config.settings.measure_steps, 3);
  EXPECT_FALSE(config.warmup_seconds || config.measure_seconds);
  EXPECT_EQ(config.settings.experiment_timeout, 600);
  EXPECT_EQ(config.worker_timeout, 30);
  EXPECT_EQ(config.host_overhead, std::nullopt) << "the backend's";
  EXPECT_EQ(config.allocator, std::nullopt) << "the backend's";
  EXPECT_EQ(config.ranks_per_experiment, std::nullopt);
  EXPECT_FALSE(config.settings.share_gpu);
  EXPECT_EQ(config.settings.attention, AttentionKind::sdpa);
}

TEST(ReadDstune, ReadsEveryKey) {
  const auto [config, model_known, faults] = read(
      R"({"model": {"model_type": "gpt2", "n_positions": 64}, "sequence_length": 32, "memory_limit": "4GiB",
          "ranks_per_experiment": 2, "backend": "sim", "warmup_steps": 0, "measure_steps": 5,
          "warmup_seconds": 0.5, "measure_seconds": 2,
          "experiment_timeout": 1.5, "seed": 7, "dropout": true, "worker_timeout": 7.5,
          "host_overhead": "none", "share_gpu": true, "allocator": "caching",
          "attention": "eager"})");

  EXPECT_EQ(faults, Faults{});
  EXPECT_EQ(config.settings.attention, AttentionKind::eager);
  EXPECT_EQ(config.allocator, AllocatorModel::caching);
  EXPECT_EQ(config.settings.model.name, "inline");
  EXPECT_EQ(config.settings.model.attention_dropout, 0.1);
  EXPECT_TRUE(config.settings.share_gpu);
  EXPECT_EQ(config.settings.sequence_length, 32);
  EXPECT_EQ(config.settings.memory_limit, Bytes{4} << 30U);
  EXPECT_EQ(config.ranks_per_experiment, 2);
  EXPECT_EQ(config.settings.backend, "sim");
  EXPECT_EQ(config.settings.warmup_steps, 0);
  EXPECT_EQ(config.settings.measure_steps, 5);
  EXPECT_EQ(config.warmup_seconds, 0.5);
  EXPECT_EQ(config.measure_seconds, 2);
  EXPECT_EQ(config.settings.experiment_timeout, 1.5);
  EXPECT_EQ(config.settings.seed, 7U);
  EXPECT_EQ(config.worker_timeout, 7.5);
  EXPECT_EQ(config.host_overhead, HostOverhead{});
}

TEST(ReadDstune, TakesEveryKindOfAttentionByName) {
  using enum AttentionKind;
  for (const AttentionKind kind : {sdpa, eager, eager_torch_1_10, flash}) {
    const std::string text =
        R"({"model": "gpt2", "attention": ")" + std::string(name_of(kind)) + "\"}";

    const auto [config, model_known, faults] = read(text.c_str());

    EXPECT_EQ(faults, Faults{});
    EXPECT_EQ(config.settings.attention, kind);
  }
}

TEST(ReadDstune, DropoutIsOffUnlessAskedFor) {
  const auto model = read(R"({"model": "gpt2"})").config.settings.model;

  EXPECT_EQ(model.embedding_dropout, 0);
  EXPECT_EQ(model.attention_dropout, 0);
  EXPECT_EQ(model.residual_dropout, 0);
}

TEST(ReadDstune, ImbalanceIsOfModelsWithExperts) {
  EXPECT_EQ(read(R"({"model": "mixtral-8x7b"})").config.settings.model.expert_imbalance,
            std::nullopt);
  EXPECT_EQ(read(R"({"model": "mixtral-8x7b", "expert_imbalance": 0})")
                .config.settings.model.expert_imbalance,
            0.0);
  EXPECT_EQ(read(R"({"model": "gpt2", "expert_imbalance": 0.5})").faults,
            (Faults{"/dstune/expert_imbalance  is 0.5, but no layer of gpt2 has experts; accepted: "
                    "nothing"}));
}

TEST(ReadDstune, OptionsWinOverTheFile) {
  CommandLine options;
  options.model = "gpt2-medium";
  options.memory_limit = 5000;
  options.ranks_per_experiment = 3;
  options.backend = "cpu";
  options.share_gpu = true;

  const auto [config, model_known, faults] =
      read(R"({"model": "absent", "memory_limit": 1, "ranks_per_experiment": 1, "backend": "sim"})",
           options);

  EXPECT_EQ(faults, Faults{});
  EXPECT_EQ(config.warnings,
            Faults{"--model gpt2-medium overrides /dstune/model, which is \"absent\""});
  EXPECT_EQ(config.settings.model.name, "gpt2-medium");
  EXPECT_EQ(config.settings.memory_limit, 5000U);
  EXPECT_EQ(config.ranks_per_experiment, 3);
  EXPECT_EQ(config.settings.backend, "cpu");
  EXPECT_TRUE(config.settings.share_gpu);
}

TEST(ReadDstune, FaultsOfAnOptionNameTheFlag) {
  CommandLine options;
  options.model = "absent.json";

  const auto faults = read("{}", options).faults;

  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].rfind("--model  is \"absent.json\", neither a preset nor a file", 0), 0U);
}

TEST(ReadDstune, FindsTheModelBesideTheConfiguration) {
  const TemporaryDirectory directory;
  write_file(directory / "m.json", R"({"model_type": "gpt2", "n_positions": 128})");

  const auto config = read(R"({"model": "m.json"})", {}, directory / "c.json").config;

  EXPECT_EQ(config.settings.model.name, "m");
  EXPECT_EQ(config.settings.sequence_length, 128);
}

TEST(ReadDstune, NotesTheTaskOfTheArchitecturesUnlessItIsGiven) {
  constexpr const char* kModel =
      R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"]})";
  const auto by_class = read(concat(R"({"model": )", kModel, "}").c_str()).config;
  const auto by_key =
      read(concat(R"({"task": "masked_lm", "model": )", kModel, "}").c_str()).config;

  EXPECT_EQ(by_class.settings.model.task, Task::sequence_classification);
  EXPECT_EQ(by_class.notes.size(), 1U);
  EXPECT_EQ(by_key.settings.model.task, Task::masked_lm);
  EXPECT_TRUE(by_key.notes.empty());
}

TEST(ReadDstune, NamesThePresetsIfTheModelIsMissing) {
  const std::string accepted =
      "accepted: a preset or its name on the hub (dstune-mpi --list-models), the path of a Hugging "
      "Face config.json, or "
      "such an object";

  EXPECT_FALSE(read("{}").model_known);
  EXPECT_EQ(read("{}").faults, Faults{"/dstune/model  is missing; " + accepted + "; or --model"});
  EXPECT_EQ(read("null").faults, read("{}").faults);
  EXPECT_EQ(read(R"({"model": 5})").faults, Faults{"/dstune/model  is 5; " + accepted});
  EXPECT_EQ(read(R"({"model": ""})").faults, Faults{"/dstune/model  is \"\"; " + accepted});
}

TEST(ReadDstune, RejectsSequencesLongerThanThePositions) {
  EXPECT_EQ(read(R"({"model": "gpt2", "sequence_length": 1025})").faults,
            Faults{"/dstune/sequence_length  is 1025; accepted: an integer from 2 to 1024, the "
                   "model's n_positions"});
}

TEST(ReadDstune, RejectsWhatIsNoSize) {
  const std::string accepted =
      "; accepted: a size above 0 such as \"4GiB\", or an integer of bytes";
  for (const char* size : {"0", "-4", "\"-4GiB\"", "\"4 GiBs\"", "\"\"", "\"0\"", "1.5", "true"}) {
    const std::string text = std::string(R"({"model": "gpt2", "memory_limit": )") + size + "}";

    EXPECT_EQ(read(text.c_str()).faults,
              Faults{std::string("/dstune/memory_limit  is ") + size + accepted});
  }
}

TEST(ReadDstune, TakesSizesAsBytesToo) {
  EXPECT_EQ(read(R"({"model": "gpt2", "memory_limit": 4e9})").config.settings.memory_limit,
            4'000'000'000U);
}

TEST(ReadDstune, RejectsWrongValuesAndUnknownKeys) {
  EXPECT_EQ(read(R"({"modle": "gpt2", "model": "gpt2", "backend": "gpu", "warmup_steps": -1,
                     "measure_steps": 0, "measure_seconds": -1, "experiment_timeout": 0, "seed": -1, "dropout": 0.1,
                     "worker_timeout": "10", "sequence_length": 1, "ranks_per_experiment": 0,
                     "attention": "flesh"})")
                .faults,
            (Faults{"/dstune/modle  is unknown; did you mean \"model\"?",
                    "/dstune/backend  is \"gpu\"; did you mean \"cpu\"? accepted: \"auto\", "
                    "\"cpu\", \"cuda\", \"sim\"",
                    "/dstune/warmup_steps  is -1; accepted: an integer from 0 to 1000000000",
                    "/dstune/measure_steps  is 0; accepted: an integer from 1 to 1000000000",
                    "/dstune/measure_seconds  is -1; accepted: a number from 0 to 60",
                    "/dstune/experiment_timeout  is 0; accepted: a number > 0",
                    "/dstune/seed  is -1; accepted: an integer >= 0",
                    "/dstune/dropout  is 0.1; accepted: true or false",
                    "/dstune/worker_timeout  is \"10\"; accepted: a number > 5",
                    "/dstune/sequence_length  is 1; accepted: an integer from 2 to 1000000000",
                    "/dstune/ranks_per_experiment  is 0; accepted: an integer from 1 to 1000000 "
                    "or null",
                    "/dstune/attention  is \"flesh\"; did you mean \"flash\"? accepted: \"sdpa\", "
                    "\"eager\", \"eager_torch1.10\", \"flash\""}));
}

// transformers has none but the eager one for DeBERTa.
TEST(ReadDstune, FlashIsRefusedWhereAModelIsEagerOnly) {
  EXPECT_EQ(read(R"({"model": "deberta-v3-base", "attention": "flash"})").faults,
            Faults{"/dstune/attention  is \"flash\"; accepted: \"eager\", and \"sdpa\", which is "
                   "eager too: transformers has no other for deberta-v2"});
  EXPECT_EQ(read(R"({"model": "deberta-v3-base", "attention": "sdpa"})").faults, Faults{});
  EXPECT_EQ(read(R"({"model": "gpt2", "attention": "flash"})").faults, Faults{});
}

}  // namespace
}  // namespace dstune::dstune_section_test
