// Trainers' files beside what transformers and accelerate make of them: tests/data/trainers.json,
// which scripts/make_trainer_fixture.py writes.
#include "core/config/trainer/trainer_file.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/text.hpp"
#include "core/config/command_line/command_line.hpp"
#include "core/config/deepspeed/auto_values.hpp"
#include "core/config/tuning_config.hpp"
#include "core/input/problems.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::trainer_file_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

const json::object& fixture() {
  static const json::object content =
      json::parse(read_text_file(test::test_data("trainers.json"))).as_object();
  return content;
}

std::string path_of(std::string_view file) { return test::test_data(concat("trainers/", file)); }

ConfigFile read(std::string_view file) {
  Problems problems{std::string(file)};
  auto content = read_config_file(path_of(file), problems);
  EXPECT_EQ(faults_in(problems), Faults()) << file;
  EXPECT_EQ(problems.warnings(), std::vector<std::string>()) << file;
  return content.value_or(ConfigFile());
}

// Numbers as doubles, and neither null members, which say nothing, nor the sections that `without`
// names.
json::value plain(const json::value& value, const std::vector<std::string>& without = {}) {
  if (value.is_number()) return value.to_number<double>();
  if (value.is_array()) {
    json::array list;
    for (const auto& element : value.get_array()) list.push_back(plain(element));
    return list;
  }
  if (!value.is_object()) return value;
  json::object object;
  for (const auto& member : value.get_object()) {
    const bool is_left_out = std::ranges::count(without, std::string(member.key())) > 0;
    if (!member.value().is_null() && !is_left_out) object[member.key()] = plain(member.value());
  }
  return object;
}

// The Trainer knows the number of ranks, and this reader does not.
json::value deepspeed_part(const json::value& config, std::vector<std::string> without = {}) {
  without.insert(without.end(), {"dstune", "train_batch_size"});
  return sorted_by_key(plain(config, without));
}

TEST(TrainerFile, ConfigurationIsThatOfTransformersAndAccelerate) {
  const json::object& cases = fixture().at("cases").as_object();
  ASSERT_EQ(cases.size(), 12U);

  for (const auto& one : cases) {
    if (one.key() == "accelerate_zero3.yaml") continue;
    EXPECT_EQ(deepspeed_part(read(one.key()).config), deepspeed_part(one.value().at("processed")))
        << one.key();
  }
}

// accelerate 1.15 launches with the folder "none", whatever its file says (nothing sets
// ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_NVME_PATH); here the file's word counts.
TEST(TrainerFile, FolderOfADriveIsTheOneThatTheFileNames) {
  const json::object own = read("accelerate_zero3.yaml").config;
  json::value accelerates = fixture().at("cases").at("accelerate_zero3.yaml").at("processed");
  json::value& path = accelerates.at("zero_optimization").at("offload_param").at("nvme_path");
  ASSERT_EQ(path, "none");

  path = "/local_nvme";

  EXPECT_EQ(deepspeed_part(own), deepspeed_part(accelerates));
}

TEST(TrainerFile, ValuesThatTheModelDecidesAreThoseOfTheTrainer) {
  const auto hidden_size = fixture().at("hidden_size").as_int64();
  int compared = 0;

  for (const auto& one : fixture().at("cases").as_object()) {
    const json::value* const finalized = one.value().as_object().if_contains("finalized");
    if (finalized == nullptr) continue;
    const json::object resolved = resolve_auto(read(one.key()).config, hidden_size);
    // How long the rate warms up depends on the number of steps.
    EXPECT_EQ(deepspeed_part(resolved, {"scheduler"}), deepspeed_part(*finalized, {"scheduler"}))
        << one.key();
    ++compared;
  }

  EXPECT_EQ(compared, 9);
}

TEST(TrainerFile, ZeroInitIsAcceleratesFlagInStage3) {
  EXPECT_EQ(read("accelerate_file.yaml").config.at("dstune").at("zero_init"), false);
  EXPECT_EQ(read("accelerate_zero3.yaml").config.at("dstune").at("zero_init"), true);
  EXPECT_FALSE(read("accelerate_zero2.yaml").config.contains("dstune"));
}

TEST(TrainerFile, EveryFieldOfTrainingArgumentsIsKnown) {
  json::object all;
  for (const auto& field : fixture().at("fields").as_array()) all[field.as_string()] = nullptr;
  all.erase("deepspeed");
  Problems problems("arguments.json");

  translate(TrainerKind::training_arguments, all, "arguments.json", problems);

  EXPECT_EQ(problems.warnings(), std::vector<std::string>());
  EXPECT_TRUE(problems.empty());
}

TEST(TrainerFile, ArgumentsSayWhatTheStepIs) {
  EXPECT_EQ(read("arguments_zero2.json").config.at("dstune"),
            (json::object{
                {"model", "gpt2"}, {"sequence_length", 512}, {"activation_checkpointing", true}}));
  EXPECT_EQ(read("arguments_fp16.json").config.at("dstune"),
            (json::object{
                {"model", "gpt2"},
                {"attention", "eager"},
                {"activation_checkpointing", {{"every_n_layers", 1}, {"use_reentrant", true}}}}));
}

TEST(TrainerFile, LlamaFactorySaysWhatTheStepIs) {
  const json::value reentrant{{"every_n_layers", 1}, {"use_reentrant", true}};

  EXPECT_EQ(read("llama_factory_full.yaml").config.at("dstune"),
            (json::object{{"model", "llama-3.2-1b"},
                          {"sequence_length", 1024},
                          {"activation_checkpointing", reentrant}}));
  EXPECT_EQ(
      plain(read("llama_factory_lora.yaml").config.at("dstune")),
      plain(json::object{{"model", "qwen2.5-7b"},
                         {"sequence_length", 2048},
                         {"lora", {{"r", 8}, {"lora_alpha", 16}, {"target_modules", "all-linear"}}},
                         {"attention", "flash"},
                         {"activation_checkpointing", reentrant}}));
  EXPECT_EQ(plain(read("llama_factory_pt.yaml").config.at("dstune")),
            plain(json::object{{"model", "gpt2"},
                               {"sequence_length", 2048},
                               {"lora",
                                {{"r", 16},
                                 {"lora_alpha", 64},
                                 {"lora_dropout", 0.1},
                                 {"target_modules", json::array{"c_attn", "c_proj"}}}}}));
}

TEST(TrainerFile, AxolotlSaysWhatTheStepIs) {
  EXPECT_EQ(plain(read("axolotl_lora.yaml").config.at("dstune")),
            plain(json::object{
                {"model", "llama-3.2-1b"},
                {"sequence_length", 2048},
                {"lora",
                 {{"lora_dropout", 0.05},
                  {"r", 16},
                  {"lora_alpha", 32},
                  {"target_modules", json::array{"gate_proj", "down_proj", "up_proj", "q_proj",
                                                 "v_proj", "k_proj", "o_proj"}}}},
                {"attention", "flash"},
                {"activation_checkpointing", true}}));
  EXPECT_EQ(plain(read("axolotl_full.yaml").config.at("dstune")),
            plain(json::object{
                {"model", "gpt2"},
                {"sequence_length", 512},
                {"activation_checkpointing", {{"every_n_layers", 1}, {"use_reentrant", true}}},
                {"loss", "fused"}}));
  EXPECT_EQ(
      plain(read("axolotl_fp16.yaml").config.at("dstune")),
      plain(json::object{
          {"model", "gpt2"},
          {"sequence_length", 1024},
          {"lora",
           {{"lora_dropout", 0}, {"r", 8}, {"lora_alpha", 16}, {"target_modules", "all-linear"}}},
          {"attention", "sdpa"}}));
}

TEST(TrainerFile, NotesNameTheKeysThatValuesComeFrom) {
  EXPECT_EQ(read("llama_factory_lora.yaml").notes,
            (std::vector<std::string>{
                "llama_factory_lora.yaml: train_micro_batch_size_per_gpu 2 from "
                "per_device_train_batch_size, gradient_accumulation_steps 8 from "
                "gradient_accumulation_steps, gradient_clipping 1.0 from max_grad_norm's default, "
                "fp16.enabled false from fp16's default, bf16.enabled true from bf16, model "
                "\"qwen2.5-7b\" from model_name_or_path, sequence_length 2048 from cutoff_len, "
                "lora {\"r\":8,\"lora_alpha\":16.0,\"target_modules\":\"all-linear\"} from "
                "finetuning_type, attention \"flash\" from flash_attn, "
                "activation_checkpointing {\"every_n_layers\":1,\"use_reentrant\":true} from "
                "disable_gradient_checkpointing's default",
                "every sample is assumed to have cutoff_len tokens; give dstune.lengths to "
                "describe your samples"}));
}

TEST(TrainerFile, TuningTakesIt) {
  CommandLine options;
  options.config_path = path_of("llama_factory_lora.yaml");

  const TuningConfig config = read_tuning_config(options);

  EXPECT_EQ(config.stages, std::vector<int>{3});
  EXPECT_EQ(config.settings.sequence_length, 2048);
  EXPECT_EQ(config.trainable_num_params, 20'185'088);
  EXPECT_EQ(config.accumulation_steps, 8);
  EXPECT_EQ(config.deepspeed.step().dtype, DType::bf16);
}

ConfigFile translated(TrainerKind kind, const json::object& file) {
  Problems problems("train.yaml");
  ConfigFile result = translate(kind, file, path_of("train.yaml"), problems);
  EXPECT_EQ(faults_in(problems), Faults());
  return result;
}

TEST(TrainerFile, WhatTheFileDoesNotSayIsADefault) {
  EXPECT_EQ(
      translated(TrainerKind::training_arguments, {{"output_dir", "out"},
                                                   {"max_grad_norm", 0.5},
                                                   {"bf16", true},
                                                   {"deepspeed", {{"gradient_clipping", "auto"}}}})
          .notes,
      std::vector<std::string>{"train.yaml: gradient_clipping 0.5 from max_grad_norm, "
                               "bf16.enabled true from bf16"});
  EXPECT_EQ(
      translated(TrainerKind::training_arguments, {{"bf16_full_eval", true},
                                                   {"deepspeed",
                                                    {{"train_micro_batch_size_per_gpu", "auto"},
                                                     {"fp16", {{"enabled", "auto"}}},
                                                     {"bf16", {{"enabled", "auto"}}}}}})
          .notes,
      std::vector<std::string>{"train.yaml: train_micro_batch_size_per_gpu 8 from "
                               "per_device_train_batch_size's default, fp16.enabled false "
                               "from fp16's default, bf16.enabled true from bf16_full_eval"});
  EXPECT_EQ(translated(TrainerKind::accelerate, {{"mixed_precision", "fp16"}}).notes,
            std::vector<std::string>{"train.yaml: fp16.enabled true from mixed_precision"});
}

TEST(TrainerFile, ZeroInitIsSaidWhereItStands) {
  const auto notes = read("accelerate_zero3.yaml").notes;

  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes[0].find("zero_init true from deepspeed_config.zero3_init_flag"),
            std::string::npos)
      << notes[0];
  EXPECT_EQ(notes[0].find("zero3_init_flag's default"), std::string::npos) << notes[0];
}

TEST(TrainerFile, DstuneOfTheDeepSpeedFileWins) {
  const ConfigFile file = translated(
      TrainerKind::training_arguments,
      {{"model_name_or_path", "gpt2"},
       {"max_length", 512},
       {"attn_implementation", "sdpa"},
       {"deepspeed",
        {{"autotuning", {{"enabled", true}}},
         {"dstune", {{"model", "gpt2-medium"}, {"attention", "sdpa"}, {"tuner", "random"}}}}}});

  EXPECT_EQ(file.config.at("autotuning"), (json::object{{"enabled", true}}));
  EXPECT_EQ(sorted_by_key(file.config.at("dstune")),
            sorted_by_key(json::object{{"model", "gpt2-medium"},
                                       {"attention", "sdpa"},
                                       {"tuner", "random"},
                                       {"sequence_length", 512}}));
  EXPECT_EQ(file.notes,
            (std::vector<std::string>{"train.yaml: sequence_length 512 from max_length",
                                      "the DeepSpeed file's dstune.model, \"gpt2-medium\", "
                                      "overrides model \"gpt2\" from model_name_or_path"}));
}

// Nobody gave both of them, which would be a fault.
TEST(TrainerFile, LengthsOfTheDeepSpeedFileReplaceTheSequenceLength) {
  const auto dstune_with = [](const json::value& lengths) {
    return translated(TrainerKind::training_arguments,
                      {{"max_length", 512}, {"deepspeed", {{"dstune", {{"lengths", lengths}}}}}})
        .config.at("dstune");
  };
  const json::object packed{{"file", "lengths.txt"}, {"batches", "packed"}};

  EXPECT_EQ(dstune_with(json::array{128, 256}), (json::object{{"lengths", json::array{128, 256}}}));
  EXPECT_EQ(dstune_with(packed), (json::object{{"lengths", packed}, {"sequence_length", 512}}));
}

TEST(TrainerFile, NullOfAxolotlsPrecisionIsOff) {
  const auto enables_bf16 = [](json::object file) {
    file["base_model"] = "gpt2";
    const ConfigFile result = translated(TrainerKind::axolotl, file);
    return result.config.at("bf16").at("enabled").as_bool();
  };

  EXPECT_TRUE(enables_bf16({}));
  EXPECT_TRUE(enables_bf16({{"bf16", "auto"}}));
  EXPECT_TRUE(enables_bf16({{"bf16", nullptr}, {"bfloat16", true}}));
  EXPECT_FALSE(enables_bf16({{"bf16", nullptr}}));
  EXPECT_FALSE(enables_bf16({{"fp16", true}}));
}

TEST(TrainerFile, NullOfTrlsLengthCutsNothing) {
  const auto of = [](json::object file) {
    file["dataset_text_field"] = "text";
    return translated(TrainerKind::training_arguments, file);
  };

  EXPECT_EQ(of({}).config.at("dstune").at("sequence_length"), 1024);
  const ConfigFile uncut = of({{"max_length", nullptr}});
  EXPECT_FALSE(uncut.config.at("dstune").as_object().contains("sequence_length"));
  EXPECT_EQ(uncut.notes.back(),
            "max_length is null, so no sample is cut: --sequence-length says how long they "
            "are");
}

Faults faults_of_file(TrainerKind kind, const json::object& file) {
  Problems problems("train.yaml");
  translate(kind, file, path_of("train.yaml"), problems);
  return faults_in(problems);
}

TEST(TrainerFile, WhatTheTrainerRefusesIsAFault) {
  EXPECT_EQ(faults_of_file(TrainerKind::training_arguments, {{"output_dir", "out"},
                                                             {"per_device_train_batch_size", 4},
                                                             {"bf16", true},
                                                             {"deepspeed", "ds_plain.json"}}),
            Faults{"/per_device_train_batch_size  is 4, but train_micro_batch_size_per_gpu of the "
                   "DeepSpeed file is 2, which the Trainer refuses; accepted: the same, or "
                   "\"auto\" there"});
  EXPECT_EQ(
      faults_of_file(TrainerKind::training_arguments,
                     {{"bf16", true}, {"deepspeed", {{"fp16", {{"enabled", true}}}}}}),
      (Faults{"/fp16  is false by default, but fp16.enabled of the DeepSpeed file is true, which "
              "the Trainer refuses; accepted: the same, or \"auto\" there",
              "/bf16  is for bf16, but the DeepSpeed file enables fp16, which accelerate "
              "refuses"}));
  EXPECT_EQ(
      faults_of_file(
          TrainerKind::accelerate,
          {{"distributed_type", "DEEPSPEED"},
           {"deepspeed_config", {{"deepspeed_config_file", "ds_plain.json"}, {"zero_stage", 2}}}}),
      Faults{"/deepspeed_config/zero_stage  is given together with deepspeed_config_file, which "
             "accelerate refuses"});
}

TEST(TrainerFile, OtherStepsAreFaults) {
  EXPECT_EQ(faults_of_file(TrainerKind::accelerate, {{"distributed_type", "FSDP"}}),
            Faults{"/distributed_type  is \"FSDP\"; accepted: DEEPSPEED, which is what is tuned"});
  EXPECT_EQ(faults_of_file(TrainerKind::llama_factory,
                           {{"stage", "dpo"}, {"quantization_bit", 4}, {"finetuning_type", "oft"}}),
            (Faults{"/stage  is \"dpo\", whose steps are not modelled; accepted: sft, pt",
                    "/finetuning_type  is \"oft\", which is not modelled; accepted: full, lora",
                    "/quantization_bit  is 4, whose steps are not modelled"}));
  EXPECT_EQ(faults_of_file(TrainerKind::axolotl, {{"base_model", "gpt2"},
                                                  {"adapter", "qlora"},
                                                  {"rl", "dpo"},
                                                  {"optimizer", "muon"},
                                                  {"tensor_parallel_size", 2},
                                                  {"context_parallel_size", 1},
                                                  {"gradient_checkpointing", "offload"}}),
            (Faults{"/optimizer  is \"muon\", which is not modelled; accepted: adamw_torch, "
                    "adamw_torch_fused, or an optimizer in the DeepSpeed file",
                    "/adapter  is \"qlora\", which is not modelled; accepted: lora, or none",
                    "/gradient_checkpointing  is \"offload\", which is not modelled; accepted: "
                    "true, false",
                    "/rl  is \"dpo\", whose steps are not modelled",
                    "/tensor_parallel_size  is 2, which is not modelled"}));
  EXPECT_EQ(faults_of_file(TrainerKind::training_arguments,
                           {{"optim", "paged_adamw_8bit"}, {"fsdp", "full_shard"}}),
            (Faults{"/optim  is \"paged_adamw_8bit\", which is not modelled; accepted: "
                    "adamw_torch, adamw_torch_fused, or an optimizer in the DeepSpeed file",
                    "/fsdp  is \"full_shard\", which shards without DeepSpeed"}));
}

TEST(TrainerFile, UnknownAttentionOfLlamaFactoryIsAFault) {
  const auto faults_of = [](const char* name) {
    return faults_of_file(TrainerKind::llama_factory,
                          {{"finetuning_type", "full"}, {"flash_attn", name}});
  };

  EXPECT_EQ(faults_of("auto"), Faults());
  EXPECT_EQ(
      faults_of("fa4"),
      Faults{"/flash_attn  is \"fa4\", which is not modelled; did you mean \"fa2\"? accepted: "
             "auto, disabled, sdpa, fa2, fa3"});
  EXPECT_EQ(faults_of("xformers"),
            Faults{"/flash_attn  is \"xformers\", which is not modelled; accepted: auto, disabled, "
                   "sdpa, fa2, fa3"});
}

TEST(TrainerFile, FileThatAccelerateCannotReadIsOneFault) {
  const auto faults_of = [](const json::value& path) {
    return faults_of_file(TrainerKind::accelerate,
                          {{"deepspeed_config", {{"deepspeed_config_file", path}}}});
  };

  ASSERT_EQ(faults_of("absent.json").size(), 1U);
  EXPECT_NE(faults_of("absent.json")[0].find("absent.json"), std::string::npos);
  EXPECT_EQ(
      faults_of(""),
      Faults{"/deepspeed_config/deepspeed_config_file  is an empty string; accepted: a file"});
  EXPECT_EQ(faults_of(json::object{{"train_batch_size", 8}}),
            Faults{"/deepspeed_config/deepspeed_config_file  names a file without "
                   "zero_optimization, which accelerate refuses"});
}

TEST(TrainerFile, WhatIsLeftOutAndWhatIsUnknownAreWarnings) {
  Problems problems("arguments.json");

  translate(TrainerKind::training_arguments,
            {{"output_dir", "out"}, {"torch_compile", true}, {"lerning_rate", 1e-4}}, "a.json",
            problems);

  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(problems.warnings(),
            (std::vector<std::string>{
                "/torch_compile is true, which is not modelled: the step is measured without it",
                "/lerning_rate is unknown here and has no effect"}));
}

TEST(TrainerFile, WrongTypesAndMissingFilesAreFaults) {
  const Faults faults =
      faults_of_file(TrainerKind::llama_factory, {{"per_device_train_batch_size", "two"},
                                                  {"bf16", "maybe"},
                                                  {"finetuning_type", "full"},
                                                  {"deepspeed", "absent.json"}});

  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0], "/per_device_train_batch_size  is \"two\"; accepted: an integer >= 1");
  EXPECT_EQ(faults[1], "/bf16  is \"maybe\"; accepted: true, false");
  EXPECT_NE(faults[2].find("absent.json"), std::string::npos);
}

TEST(TrainerFile, DeepSpeedConfigurationsAreNoTrainersFile) {
  EXPECT_FALSE(trainer_of({{"train_batch_size", 8}, {"zero_optimization", {{"stage", 2}}}}));
  EXPECT_FALSE(read("ds_plain.json").config.contains("dstune"));
}

}  // namespace
}  // namespace dstune::trainer_file_test
