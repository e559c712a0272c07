#include "core/config/tuning_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::tuning_config_test {
namespace {

using testing_support::Faults;
using testing_support::faults_of;
using testing_support::TemporaryDirectory;
using testing_support::write_file;

class ReadTuningConfig : public testing::Test {
 protected:
  TuningConfig read(std::string_view text, CommandLine options = {}) {
    options.config_path = directory_ / "config.json";
    write_file(options.config_path, text);
    return read_tuning_config(options);
  }
  Faults faults(std::string_view text) {
    return faults_of([&] { read(text); });
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(ReadTuningConfig, SaysWhichStagesOfTheSpaceAreNotSearched) {
  const auto config = read(R"({"zero_optimization": {"stage": [0, 3]},
      "dstune": {"model": "gpt2", "space": {"z2": {"/zero_optimization/overlap_comm": [true, false]},
                                            "z3": {"/zero_optimization/overlap_comm": [true, false]}}}})");

  EXPECT_THAT(config.warnings, testing::ElementsAre("z2 of /dstune/space is not used: stage 2 is "
                                                    "not among /zero_optimization/stage"));
  EXPECT_EQ(config.space.of_stage.count(2), 0U);
  EXPECT_EQ(config.space.of_stage.count(3), 1U);
}

TEST_F(ReadTuningConfig, NeedsNoFileForAModelOfTheCommandLine) {
  CommandLine options;
  options.model = "EleutherAI/pythia-70m";
  options.sequence_length = 256;
  options.checkpointing = "true";
  options.lora_rank = 4;

  const TuningConfig config = read_tuning_config(options);

  EXPECT_EQ(config.source, "no CONFIG.json");
  EXPECT_EQ(config.open_precision, "bf16");
  EXPECT_EQ(config.settings.model.name, "EleutherAI/pythia-70m");
  EXPECT_EQ(config.model_source, "preset pythia-70m");
  EXPECT_EQ(config.settings.sequence_length, 256);
  EXPECT_TRUE(config.settings.model.fine_tuning.lora);
  EXPECT_EQ(config.settings.model.fine_tuning.lora->rank, 4);
  EXPECT_TRUE(config.deepspeed.step().checkpointing.is_on());
}

TEST_F(ReadTuningConfig, NeedsOnlyAModel) {
  const auto config = read(R"({"dstune": {"model": "gpt2"}})");

  EXPECT_TRUE(config.deepspeed.json().empty());
  EXPECT_EQ(config.stages, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(config.start_micro_batch, 1);
  EXPECT_EQ(config.autotuning.tuner_num_trials, 50);
  EXPECT_TRUE(config.warnings.empty());
}

TEST_F(ReadTuningConfig, ObeysWhatTheCommandLineChanges) {
  CommandLine options;
  options.without = {"offload_optimizer"};
  options.precision = "bf16";

  const auto config = read(
      R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}, "overlap_comm": true},
          "bf16": {"enabled": "auto"}, "dstune": {"model": "gpt2"}})",
      options);

  EXPECT_EQ(to_json_text(config.deepspeed.json(), 0),
            R"({"zero_optimization":{"overlap_comm":true},"bf16":{"enabled":true}})");
  EXPECT_EQ(config.notes.size(), 2U);
  EXPECT_TRUE(config.warnings.empty());
}

TEST_F(ReadTuningConfig, WarnsOfTheModelsUnknownKeys) {
  const auto config = read(R"({"dstune": {"model": {"model_type": "gpt2", "n_layers": 2}}})");

  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_THAT(config.warnings[0], testing::HasSubstr("/dstune/model/n_layers"));
}

TEST_F(ReadTuningConfig, PassesOtherKeysThroughInTheirOrder) {
  const auto config = read(R"({
    "zz_mine": {"b": 5e8, "a": [1, 0.1, null]},
    "train_micro_batch_size_per_gpu": 2,
    "tensorboard": {"enabled": true, "output_path": "x"},
    "dstune": {"model": "gpt2"},
    "steps_per_print": 2e3,
    "autotuning": {"enabled": true},
    "aa_mine": "text",
  })");

  EXPECT_EQ(to_json_text(config.deepspeed.json(), 0),
            R"({"zz_mine":{"b":500000000.0,"a":[1,0.1,null]},)"
            R"("tensorboard":{"enabled":true,"output_path":"x"},"steps_per_print":2000,)"
            R"("aa_mine":"text"})");
  EXPECT_EQ(config.warnings,
            std::vector<std::string>{"/* is not known to DeepSpeed 0.19.8; passed on, not modelled "
                                     "(2 keys: zz_mine, aa_mine)"});
}

TEST_F(ReadTuningConfig, KeepsTheZeroSettingsOfTheUserButNotTheStage) {
  const auto config = read(R"({
    "dstune": {"model": "gpt2"},
    "zero_optimization": {"stage": [1, 2], "reduce_bucket_size": 5e7, "overlap_comm": false,
                          "round_robin_gradients": "auto", "cpu_offload": true}
  })");

  EXPECT_EQ(config.stages, (std::vector<int>{1, 2}));
  EXPECT_EQ(to_json_text(config.deepspeed.json(), 0),
            R"({"zero_optimization":{"reduce_bucket_size":50000000,"overlap_comm":false,)"
            R"("offload_optimizer":{"device":"cpu"}}})");
}

TEST_F(ReadTuningConfig, ResolvesAutoFromTheModel) {
  const auto config = read(R"({
    "dstune": {"model": {"model_type": "gpt2", "n_embd": 64, "n_head": 2}},
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
    "bf16": {"enabled": true},
    "zero_optimization": {"stage": "auto", "reduce_bucket_size": "auto",
                          "stage3_param_persistence_threshold": "auto"}
  })");

  EXPECT_EQ(to_json_text(config.deepspeed.json(), 0),
            R"({"gradient_clipping":1.0,"bf16":{"enabled":true},)"
            R"("zero_optimization":{"reduce_bucket_size":4096,)"
            R"("stage3_param_persistence_threshold":640}})");
  EXPECT_TRUE(config.warnings.empty());
}

TEST_F(ReadTuningConfig, RemembersWhatIsLeftToTheTrainer) {
  const auto config = read(R"({
    "dstune": {"model": "gpt2"}, "gradient_clipping": "auto",
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "eps": 1e-6, "betas": "auto"}},
    "zero_optimization": {"reduce_bucket_size": "auto"}
  })");

  EXPECT_EQ(config.left_to_trainer,
            (std::vector<std::string>{"/gradient_clipping", "/optimizer/params/lr",
                                      "/optimizer/params/betas"}));
}

TEST_F(ReadTuningConfig, BelievesWhatIsSaidOfTheModel) {
  const auto config = read(
      R"({"dstune": {"model": "gpt2"}, "autotuning": {"model_info": {"num_params": 125000000}}})");

  EXPECT_EQ(config.num_params, 125'000'000);
  EXPECT_EQ(read(R"({"dstune": {"model": "gpt2"}})").num_params, 124'439'808);
  EXPECT_EQ(faults(R"({"dstune": {"model": "gpt2"},
                       "autotuning": {"model_info": {"num_layers": 13}}})"),
            Faults{"/autotuning/model_info/num_layers  is 13, but the model of dstune.model has "
                   "12; remove one of the two"});
}

TEST_F(ReadTuningConfig, DividesTheModelAmongModelParallelRanks) {
  const auto config = read(R"({
    "dstune": {"model": "gpt2", "ranks_per_experiment": 8},
    "train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
    "autotuning": {"mp_size": 2, "model_info": {"num_layers": 12, "num_params": 124439808}}
  })");

  EXPECT_EQ(config.settings.model.num_layers, 6);
  EXPECT_EQ(config.num_params, 124'439'808);
  ASSERT_EQ(config.notes.size(), 1U);
  EXPECT_THAT(config.notes[0], testing::HasSubstr("are not modelled"));
  EXPECT_EQ(faults(R"({"dstune": {"model": "gpt2"}, "autotuning": {"mp_size": 13}})"),
            Faults{"/autotuning/mp_size  is 13; accepted: at most 12, the layers of "
                   "dstune.model"});
}

TEST_F(ReadTuningConfig, CountsWhatIsTrained) {
  const auto all = read(R"({"dstune": {"model": "gpt2"}})");
  const auto adapters = read(R"({"dstune": {"model": "gpt2", "lora": {}}})");

  EXPECT_EQ(all.trainable_num_params, all.num_params);
  EXPECT_EQ(adapters.trainable_num_params, 294'912);
  EXPECT_EQ(adapters.num_params, 124'439'808 + 294'912);
}

TEST_F(ReadTuningConfig, WarnsOfOffloadingWithoutEffect) {
  const auto warnings = [&](const char* stages, const char* key) {
    return read(concat(R"({"dstune": {"model": "gpt2"}, "zero_optimization": {"stage": )", stages,
                       R"(, ")", key, R"(": {"device": "cpu"}}})"))
        .warnings;
  };

  EXPECT_THAT(warnings("[2, 3]", "offload_param"),
              testing::ElementsAre("/zero_optimization/offload_param has no effect below stage 3: "
                                   "DeepSpeed ignores it there"));
  EXPECT_THAT(
      warnings("[0, 1]", "offload_optimizer"),
      testing::ElementsAre("/zero_optimization/offload_optimizer rules out stage 0: there "
                           "DeepSpeed's CPU optimizer gets parameters on the device, and crashes"));
  EXPECT_THAT(warnings("3", "offload_param"), testing::IsEmpty());
  EXPECT_THAT(warnings("[1, 2]", "offload_optimizer"), testing::IsEmpty());
}

TEST_F(ReadTuningConfig, WarnsThatNvmeIsTheCpuBelowStageThree) {
  const auto warnings = [&](const char* stages) {
    return read(concat(R"({"dstune": {"model": "gpt2"}, "zero_optimization": {"stage": )", stages,
                       R"(, "offload_optimizer": {"device": "nvme", "nvme_path": "/ssd"}}})"))
        .warnings;
  };

  EXPECT_THAT(warnings("[2, 3]"),
              testing::ElementsAre("/zero_optimization/offload_optimizer/device is \"nvme\", which "
                                   "is the same as \"cpu\" in stages 1 and 2: DeepSpeed writes "
                                   "nothing to nvme_path there"));
  EXPECT_THAT(warnings("3"), testing::IsEmpty());
}

TEST_F(ReadTuningConfig, ReadsWhatMayBePinnedOfANodeAndStoredOnItsDrive) {
  const TuningConfig config =
      read(R"({"dstune": {"model": "gpt2", "pinned_limit": "64GiB", "drive_limit": 4096}})");
  EXPECT_EQ(config.pinned_limit, Bytes{64} << 30U);
  EXPECT_EQ(config.drive_limit, Bytes{4096});
  EXPECT_EQ(read(R"({"dstune": {"model": "gpt2"}})").pinned_limit, std::nullopt);
  EXPECT_EQ(read(R"({"dstune": {"model": "gpt2"}})").drive_limit, std::nullopt);
  EXPECT_EQ(faults(R"({"dstune": {"model": "gpt2", "drive_limit": 0, "pined_limit": 1}})"),
            (Faults{"/dstune/pined_limit  is unknown; did you mean \"pinned_limit\"?",
                    "/dstune/drive_limit  is 0; accepted: a size above 0 such as \"4GiB\", or an "
                    "integer of bytes"}));
}

TEST_F(ReadTuningConfig, ReadsTheMemoryOfANode) {
  const auto limit = [&](const char* text) {
    return read(concat(R"({"dstune": {"model": "gpt2", "host_memory_limit": )", text, "}}"))
        .host_memory_limit;
  };
  EXPECT_EQ(limit(R"("512GiB")"), Bytes{512} << 30U);
  EXPECT_EQ(limit("4096"), Bytes{4096});
  EXPECT_EQ(read(R"({"dstune": {"model": "gpt2"}})").host_memory_limit, std::nullopt);
  EXPECT_EQ(faults(R"({"dstune": {"model": "gpt2", "host_memory_limit": "much"}})"),
            Faults{"/dstune/host_memory_limit  is \"much\"; accepted: a size above 0 such as "
                   "\"4GiB\", or an integer of bytes"});
}

TEST_F(ReadTuningConfig, RejectsKeysThatLookLikeAMistake) {
  EXPECT_EQ(faults(R"({"dstune": {"model": "gpt2"}, "zero_optimisation": {"stage": 3}})"),
            Faults{"/zero_optimisation  is unknown and would have no effect; did you mean "
                   "\"zero_optimization\"?"});
}

TEST_F(ReadTuningConfig, TakesTheOldFormOfZeroAndLeavesOutWhatIsRemoved) {
  const auto config = read(R"({"dstune": {"model": "gpt2"}, "zero_optimization": true,
                               "amp": {"enabled": false}})");

  EXPECT_EQ(config.stages, std::vector<int>{1});
  EXPECT_EQ(to_json_text(config.deepspeed.json(), 0), R"({"zero_optimization":{}})");
  EXPECT_EQ(config.warnings.size(), 2U);
}

TEST_F(ReadTuningConfig, TakesStagesAsPydanticDoes) {
  const auto stages = [&](const char* stage) {
    return read(concat(R"({"dstune": {"model": "gpt2"}, "zero_optimization": {"stage": )", stage,
                       "}}"))
        .stages;
  };

  EXPECT_EQ(stages("\"2\""), std::vector<int>{2});
  EXPECT_EQ(stages("true"), std::vector<int>{1});
  EXPECT_EQ(stages("3.0"), std::vector<int>{3});
}

TEST_F(ReadTuningConfig, NamesTheKeyOfSectionsThatOnlyPassThrough) {
  EXPECT_EQ(faults(R"({"dstune": {"model": "gpt2"}, "timers": {"throughput": {"enabled": 5}},
                       "wandb": {"project": 1}, "tensorboard": {"enable": true},
                       "csv_monitor": {"job_name": null}, "comms_logger": {"prof_ops": "all"},
                       "checkpoint": {"tag_validation": "maybe"},
                       "torch_autocast": {"enabled": 5}, "compile": {"deepcompile": "maybe"}})"),
            (Faults{"/timers/throughput/enabled  is 5; accepted: true or false",
                    "/wandb/project  is 1; accepted: a string",
                    "/tensorboard/enable  is unknown; did you mean \"enabled\"?",
                    "/csv_monitor/job_name  is null; accepted: a string",
                    "/comms_logger/prof_ops  is \"all\"; accepted: a list",
                    "/checkpoint/tag_validation  is \"maybe\"; accepted: \"Warn\", \"Ignore\", "
                    "\"Fail\"",
                    "/torch_autocast/enabled  is 5; accepted: true or false",
                    "/compile/deepcompile  is \"maybe\"; accepted: true or false"}));
}

TEST_F(ReadTuningConfig, SurvivesAWrongSectionBesideResultsOfTheirOwn) {
  CommandLine options;
  options.results_dir = "elsewhere";

  EXPECT_EQ(faults_of([&] { read(R"({"dstune": {"model": "gpt2"}, "autotuning": 5})", options); }),
            Faults{"/autotuning  is 5; accepted: an object"});
}

TEST_F(ReadTuningConfig, WarnsOfAutoThatOnlyTheTrainerResolves) {
  const auto config = read(
      R"({"dstune": {"model": "gpt2"}, "scheduler": {"params": {"warmup_num_steps": "auto"}}})");

  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_THAT(config.warnings[0], testing::StartsWith("/scheduler/params/warmup_num_steps stays"));
}

TEST_F(ReadTuningConfig, FoldsWarningsOfTheSameSection) {
  const auto config = read(R"({"dstune": {"model": "gpt2"}, "scheduler": {"params": {
      "warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto",
      "total_num_steps": "auto"}}})");

  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_THAT(config.warnings[0], testing::StartsWith("/scheduler/params/* stays \"auto\": "));
  EXPECT_THAT(config.warnings[0],
              testing::EndsWith(" (4 keys: warmup_min_lr, warmup_max_lr, warmup_num_steps, ...)"));
}

TEST_F(ReadTuningConfig, OptionsWin) {
  CommandLine options;
  options.model = "gpt2-large";
  options.results_dir = "elsewhere";
  options.ranks_per_experiment = 2;

  const auto config = read(
      R"({"dstune": {"model": "gpt2", "ranks_per_experiment": 4},
          "autotuning": {"results_dir": "here"},
          "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2})",
      options);

  EXPECT_EQ(config.settings.model.name, "gpt2-large");
  EXPECT_EQ(config.warnings, std::vector<std::string>{
                                 "--model gpt2-large overrides /dstune/model, which is \"gpt2\""});
  EXPECT_EQ(config.autotuning.results_dir, "elsewhere");
  EXPECT_EQ(config.objective.train_batch_size, 8);
}

TEST_F(ReadTuningConfig, PlanChecksTheBatchAgainstTheWorldSize) {
  CommandLine options;
  options.world_size = 3;
  const auto* const text = R"({"dstune": {"model": "gpt2"}, "train_batch_size": 8,
                               "train_micro_batch_size_per_gpu": 2})";

  EXPECT_EQ(faults_of([&] { read(text, options); }),
            Faults{"/train_batch_size  is 8, which is not a multiple of micro-batch 2 x 3 ranks; "
                   "the nearest that work are 6 and 12"});
}

TEST_F(ReadTuningConfig, LeavesThePrecisionOpenWhereTheFileDoes) {
  const auto config = read(R"({"dstune": {"model": "gpt2"}, "bf16": {"enabled": "auto"}})");

  EXPECT_EQ(config.open_precision, "bf16");
  EXPECT_EQ(config.deepspeed.step().dtype, DType::bf16);
  EXPECT_EQ(config.notes.size(), 1U);
  EXPECT_EQ(read(R"({"dstune": {"model": "gpt2"}})").deepspeed.step().dtype, DType::fp32);
}

TEST_F(ReadTuningConfig, KnowsTheConfigurationThatTheFileIs) {
  const auto given = [&](std::string_view keys) {
    return read(concat(R"({"dstune": {"model": "gpt2"}, )", keys, "}")).given_point;
  };
  const char* stage_2 = R"("zero_optimization": {"stage": 2}, )";

  const auto whole = given(concat(stage_2, R"("train_micro_batch_size_per_gpu": 4,
                                               "gradient_accumulation_steps": 3)"));
  const auto by_total = given(concat(stage_2, R"("train_batch_size": 24,
                                                 "gradient_accumulation_steps": 3)"));

  ASSERT_TRUE(whole && by_total);
  EXPECT_EQ(whole->stage, 2);
  EXPECT_EQ(whole->micro_batch, 4);
  EXPECT_EQ(whole->accumulation_steps, 3);
  EXPECT_EQ(by_total->micro_batch, std::nullopt);
  EXPECT_FALSE(given(R"("train_micro_batch_size_per_gpu": 4)")) << "no stage";
  EXPECT_FALSE(given(concat(stage_2, R"("gradient_accumulation_steps": 3)"))) << "no micro-batch";
  EXPECT_FALSE(given(concat(stage_2, R"("train_micro_batch_size_per_gpu": [4])"))) << "a list";
  EXPECT_FALSE(given(R"("zero_optimization": {"stage": [1, 2]},
                        "train_micro_batch_size_per_gpu": 4)"));
  EXPECT_FALSE(given(R"("zero_optimization": {"stage": 2, "overlap_comm": [true, false]},
                        "train_micro_batch_size_per_gpu": 4)"));
}

TEST_F(ReadTuningConfig, ShowsTheFaultsOfAllSectionsAtOnce) {
  EXPECT_EQ(
      faults(R"({
    "train_micro_batch_size_per_gpu": "eight",
    "fp16": {"enabled": true, "enabled": true},
    "bf16": {"enabled": true},
    "zero_optimization": {"stage": 7, "overlap_com": true},
    "autotuning": {"fast": 1},
    "dstune": {"memory_limit": -4},
  })"),
      (Faults{"/fp16/enabled  is given more than once; keep one of them",
              "/dstune/memory_limit  is -4; accepted: a size above 0 such as \"4GiB\", or an "
              "integer of bytes",
              "/dstune/model  is missing; accepted: a preset or its name on the hub (dstune-mpi "
              "--list-models), the path of a Hugging Face config.json, or such an object; or "
              "--model",
              "/autotuning/fast  is 1; accepted: true or false",
              "/zero_optimization/stage  is 7; accepted: 0, 1, 2, 3, a list of them, \"all\" "
              "or \"auto\"",
              "/train_micro_batch_size_per_gpu  is \"eight\"; accepted: an integer from 1 to "
              "1000000000, a list of them, or \"auto\"",
              "/zero_optimization/overlap_com  is unknown; did you mean \"overlap_comm\"?",
              "/bf16/enabled  is true and so is /fp16/enabled; accepted: one of the two"}));
}

TEST_F(ReadTuningConfig, EverySectionMustBeAnObject) {
  const auto found = faults(R"({"dstune": 1, "autotuning": 2, "zero_optimization": 3, "fp16": "x",
                                "bf16": [], "optimizer": 4, "aio": true, "scheduler": 5})");

  EXPECT_EQ(found.size(), 9U);  // and the missing model
}

TEST_F(ReadTuningConfig, RejectsFilesThatHoldNoObject) {
  EXPECT_EQ(faults("[1]"), Faults{"file  is a list; accepted: a JSON object"});
  EXPECT_EQ(faults("5"), Faults{"file  is 5; accepted: a JSON object"});
  EXPECT_EQ(faults(""), Faults{"file  is empty; accepted: a JSON object"});
  EXPECT_EQ(faults("{} x"),
            Faults{"line 1, column 4  has more text after the end of the JSON value"});
}

TEST_F(ReadTuningConfig, NamesTheFileInTheMessage) {
  CommandLine options;
  options.config_path = "absent.json";

  try {
    read_tuning_config(options);
    FAIL() << "no ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "absent.json: 1 problem\n  file  cannot be read: No such file or directory");
  }
}

}  // namespace
}  // namespace dstune::tuning_config_test
