#include "core/config/command_line/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::command_line_test {
namespace {

using testing_support::Faults;
using testing_support::faults_of;
using Words = std::vector<std::string>;
using Action = CommandLine::Action;

Faults faults_of_line(const Words& arguments) {
  return faults_of([&] { parse_command_line(arguments); });
}

TEST(ParseCommandLine, NeedsOnlyTheConfiguration) {
  const auto line = parse_command_line({"config.json"});

  EXPECT_EQ(line.action, Action::tune);
  EXPECT_EQ(line.config_path, "config.json");
  EXPECT_EQ(line.format, TableFormat::table);
  EXPECT_FALSE(line.model || line.memory_limit || line.ranks_per_experiment || line.backend);
  EXPECT_FALSE(line.resume || line.overwrite || line.force_resume || line.verbose ||
               line.share_gpu);
}

TEST(ParseCommandLine, ReadsEveryOption) {
  const auto line =
      parse_command_line({"--model", "gpt2-xl", "--memory-limit=4GiB", "config.json",
                          "--ranks-per-experiment", "2", "--backend=sim", "--results-dir", "out",
                          "--resume", "--format", "json", "-v", "--share-gpu"});

  EXPECT_EQ(line.config_path, "config.json");
  EXPECT_EQ(line.model, "gpt2-xl");
  EXPECT_EQ(line.memory_limit, Bytes{4} << 30U);
  EXPECT_EQ(line.ranks_per_experiment, 2);
  EXPECT_EQ(line.backend, "sim");
  EXPECT_EQ(line.results_dir, "out");
  EXPECT_TRUE(line.resume);
  EXPECT_EQ(line.format, TableFormat::json);
  EXPECT_TRUE(line.verbose);
  EXPECT_TRUE(line.share_gpu);
}

TEST(ParseCommandLine, ShowsProgressInOneOfFourWays) {
  const auto progress = [](const char* word) {
    return parse_command_line({"--progress", word, "config.json"}).progress;
  };

  EXPECT_EQ(parse_command_line({"config.json"}).progress, ProgressStyle::automatic);
  EXPECT_EQ(progress("auto"), ProgressStyle::automatic);
  EXPECT_EQ(progress("lines"), ProgressStyle::lines);
  EXPECT_EQ(progress("terminal"), ProgressStyle::terminal);
  EXPECT_EQ(progress("none"), ProgressStyle::none);
  EXPECT_EQ(
      faults_of_line({"--progress", "bar", "config.json"}),
      Faults{"--progress  is \"bar\"; accepted: \"auto\", \"lines\", \"terminal\", \"none\""});
}

TEST(ParseCommandLine, TakesTheColumnsOfATerminal) {
  EXPECT_EQ(parse_command_line({"config.json"}).columns, std::nullopt);
  EXPECT_EQ(parse_command_line({"--columns", "80", "config.json"}).columns, 80U);
  EXPECT_EQ(faults_of_line({"--columns", "8", "config.json"}).size(), 1U);
}

TEST(ParseCommandLine, TakesTheTrainingCommandAsItIs) {
  const auto line =
      parse_command_line({"c.json", "--", "python", "train.py", "--resume", "--", "x"});

  EXPECT_EQ(line.training_command, (Words{"python", "train.py", "--resume", "--", "x"}));
  EXPECT_FALSE(line.resume);
}

TEST(ParseCommandLine, RunsATrainingCommandOnlyIfThereIsOne) {
  EXPECT_TRUE(parse_command_line({"--run", "c.json", "--", "train"}).run);
  EXPECT_FALSE(parse_command_line({"c.json", "--", "train", "--run"}).run);
  EXPECT_EQ(faults_of_line({"c.json", "--run"}),
            Faults{"--run  has nothing to start; the training command goes after --"});
  EXPECT_EQ(faults_of_line({"c.json", "--run", "--", "NAME=a b", "_2=/"}).size(), 1U);
  for (const char* program : {"/lr=0.1/train.sh", "2=x", "=x"}) {
    EXPECT_TRUE(parse_command_line({"c.json", "--run", "--", "NAME=x", program}).run) << program;
  }
}

TEST(ParseCommandLine, CollectsTheFormsOfTheOptimum) {
  const auto line = parse_command_line({"c.json", "--emit", "transformers", "--emit=accelerate"});

  EXPECT_EQ(line.emit, (std::set<EmittedForm>{EmittedForm::accelerate, EmittedForm::transformers}));
  EXPECT_EQ(faults_of_line({"c.json", "--emit", "accelerat"}),
            Faults{"--emit  is \"accelerat\"; did you mean \"accelerate\"? accepted: "
                   "\"accelerate\", \"transformers\""});
}

TEST(ParseCommandLine, PlansForANumberOfWorkersOrAHostFile) {
  const auto sized = parse_command_line({"--plan", "c.json", "--world-size", "8"});
  const auto listed = parse_command_line({"--plan", "c.json", "--hostfile", "hosts"});

  EXPECT_EQ(sized.action, Action::plan);
  EXPECT_EQ(sized.world_size, 8);
  EXPECT_EQ(listed.hostfile, "hosts");
}

TEST(ParseCommandLine, ChecksForAsManyWorkersAsAreKnown) {
  const auto unsized = parse_command_line({"--check", "c.json"});
  const auto sized = parse_command_line({"--check", "--world-size", "8", "c.json"});

  EXPECT_EQ(unsized.action, Action::check);
  EXPECT_FALSE(unsized.world_size);
  EXPECT_EQ(sized.world_size, 8);
  EXPECT_EQ(faults_of_line({"c.json", "--check", "--plan", "--world-size", "2"}),
            Faults{"--check  cannot be combined with --plan"});
}

TEST(ParseCommandLine, CollectsTheKeysToLeaveOut) {
  const auto line =
      parse_command_line({"--without", "a", "c.json", "--without=/b/c", "--precision", "bf16"});

  EXPECT_EQ(line.without, (Words{"a", "/b/c"}));
  EXPECT_EQ(line.precision, "bf16");
  EXPECT_EQ(faults_of_line({"c.json", "--without=", "--precision", "fp8"}),
            (Faults{"--precision  is \"fp8\"; accepted: \"bf16\", "
                    "\"fp16\", \"fp32\"",
                    "--without  is \"\"; accepted: a non-empty string"}));
}

TEST(ParseCommandLine, TakesStandardInputOnce) {
  EXPECT_EQ(parse_command_line({"-"}).config_path, "-");
  EXPECT_EQ(
      faults_of_line({"-", "--plan", "--hostfile", "-"}),
      Faults{"--hostfile  is -, and so is CONFIG.json; only one of them can be standard input"});
}

TEST(ParseCommandLine, SendsOptionsOfMpirunWhereTheyBelong) {
  EXPECT_EQ(faults_of_line({"-n", "4", "x.json"}),
            Faults{"-n  belongs before the program: mpirun -n 4 dstune-mpi x.json"});
  EXPECT_EQ(faults_of_line({"x.json", "--resume", "-np", "4"}),
            Faults{"-np  belongs before the program: mpirun -np 4 dstune-mpi x.json --resume"});
  EXPECT_EQ(faults_of_line({"x.json", "-n"}),
            Faults{"-n  belongs before the program: mpirun -n dstune-mpi x.json"});
}

TEST(ParseCommandLine, StatusNeedsNoConfiguration) {
  EXPECT_EQ(parse_command_line({"--status"}).status_dir, kDefaultResultsDir);
  EXPECT_EQ(parse_command_line({"--status", "--format", "json"}).status_dir, kDefaultResultsDir);
  const auto options = parse_command_line({"--status", "results"});

  EXPECT_EQ(options.action, CommandLine::Action::status);
  EXPECT_EQ(options.status_dir, "results");
}

TEST(ParseCommandLine, ASweepOfADriveNeedsADirectoryAndNoConfiguration) {
  const auto options = parse_command_line({"--nvme-sweep", "/ssd"});
  const auto small = parse_command_line({"--nvme-sweep=/ssd", "--nvme-budget", "1GiB"});

  EXPECT_EQ(options.action, Action::nvme_sweep);
  EXPECT_EQ(options.nvme_sweep, "/ssd");
  EXPECT_EQ(options.nvme_budget, Bytes{4} << 30U);
  EXPECT_EQ(small.nvme_budget, Bytes{1} << 30U);
  EXPECT_THAT(faults_of_line({"--nvme-sweep"}),
              testing::Contains("--nvme-sweep  needs a value: DIR"));
}

TEST(ParseCommandLine, NothingElseIsAskedWhereADriveIsSwept) {
  EXPECT_EQ(faults_of_line({"--nvme-sweep", "/ssd", "c.json"}),
            Faults{"\"c.json\"  is an extra argument: --nvme-sweep DIR needs no CONFIG.json"});
  EXPECT_EQ(faults_of_line({"--nvme-sweep", "/ssd", "--status", "results"}),
            Faults{"--nvme-sweep  cannot be combined with --status"});
  EXPECT_EQ(faults_of_line({"--nvme-sweep", "/ssd", "--nvme-budget", "4"}),
            Faults{"--nvme-budget  is 4 B; accepted: at least 256.00 MiB, such as 4GiB"});
  EXPECT_EQ(faults_of_line({"c.json", "--nvme-budget", "4GiB"}),
            Faults{"--nvme-budget  is only for --nvme-sweep DIR"});
}

TEST(ParseCommandLine, ForceResumeResumes) {
  EXPECT_TRUE(parse_command_line({"c.json", "--force-resume"}).resume);
}

TEST(ParseCommandLine, RetriesWhatFailedOnlyInARunThatGoesOn) {
  EXPECT_TRUE(parse_command_line({"c.json", "--resume", "--retry-failed"}).retry_failed);
  EXPECT_TRUE(parse_command_line({"c.json", "--force-resume", "--retry-failed"}).retry_failed);
  EXPECT_EQ(faults_of_line({"c.json", "--retry-failed"}),
            Faults({"--retry-failed  only applies to a resumed run; add --resume"}));
}

TEST(ParseCommandLine, HelpAndVersionWinOverFaults) {
  EXPECT_EQ(parse_command_line({"--help"}).action, Action::help);
  EXPECT_EQ(parse_command_line({"--nonsense", "-h"}).action, Action::help);
  EXPECT_EQ(parse_command_line({"--version", "a", "b"}).action, Action::version);
  EXPECT_EQ(parse_command_line({"--list-backends"}).action, Action::list_backends);
}

TEST(ParseCommandLine, HelpOfTheTrainingCommandIsNotOurs) {
  EXPECT_EQ(parse_command_line({"c.json", "--", "train", "--help"}).action, Action::tune);
}

TEST(ParseCommandLine, ShowsEveryFaultAtOnce) {
  EXPECT_EQ(
      faults_of_line({"--resmue", "--overwrite=yes", "--model=", "--backend", "gpu",
                      "--memory-limit", "-5", "--ranks-per-experiment", "0", "--format", "jsn",
                      "a.json", "b.json", "--verbose", "-v", "--results-dir"}),
      (Faults{
          "--resmue  is unknown; did you mean \"--resume\"?", "--overwrite  takes no value",
          "-v  is given more than once", "--results-dir  needs a value: DIR",
          "--model  is \"\"; accepted: a non-empty string",
          "--memory-limit  is \"-5\"; accepted: a size above 0 such as 4GiB, or bytes",
          "--ranks-per-experiment  is 0; accepted: an integer from 1 to 1000000",
          "--backend  is \"gpu\"; did you mean \"cpu\"? accepted: \"auto\", \"cpu\", "
          "\"cuda\", \"sim\"",
          "--format  is \"jsn\"; did you mean \"json\"? accepted: \"table\", \"json\"",
          "\"b.json\"  is an extra argument after \"a.json\"; a training command goes after --"}));
}

TEST(ParseCommandLine, NeedsAConfiguration) {
  EXPECT_EQ(faults_of_line({}), Faults{"CONFIG.json  is missing; see dstune-mpi --help"});
  EXPECT_EQ(faults_of_line({"--", "train"}),
            Faults{"CONFIG.json  is missing; see dstune-mpi --help"});
  EXPECT_EQ(faults_of_line({""}), Faults{"CONFIG.json  is an empty path"});
}

TEST(ParseCommandLine, DoesNotGuessAbbreviations) {
  EXPECT_EQ(faults_of_line({"c.json", "--over"}).size(), 1U);
  EXPECT_EQ(faults_of_line({"c.json", "-model", "gpt2"}).size(), 2U);
}

TEST(ParseCommandLine, DoesNotTakeAnOptionForAValue) {
  EXPECT_EQ(faults_of_line({"c.json", "--model", "--resume"}),
            Faults{"--model  needs a value: NAME|PATH"});
  EXPECT_EQ(faults_of_line({"c.json", "--model", "--", "train"}),
            Faults{"--model  needs a value: NAME|PATH"});
}

TEST(ParseCommandLine, RejectsCombinationsThatContradict) {
  EXPECT_EQ(faults_of_line({"c.json", "--resume", "--overwrite"}),
            Faults{"--overwrite  cannot be combined with --resume"});
  EXPECT_EQ(faults_of_line({"c.json", "--force-resume", "--overwrite"}),
            Faults{"--overwrite  cannot be combined with --force-resume"});
  EXPECT_EQ(
      faults_of_line({"c.json", "--world-size", "2", "--hostfile", "h"}),
      (Faults{
          "--world-size  is only for --plan and --check; otherwise mpirun sets it",
          "--hostfile  is only for --plan and --check; otherwise give mpirun its own -hostfile"}));
  EXPECT_EQ(faults_of_line({"c.json", "--plan"}),
            Faults{"--plan  needs the number of workers: --world-size N, --gpus N or --hostfile "
                   "FILE"});
  EXPECT_EQ(faults_of_line({"c.json", "--plan", "--world-size", "2", "--hostfile", "h"}),
            Faults{"--hostfile  cannot be combined with --world-size"});
}

TEST(ParseCommandLine, ReadsWhatTheFileHasKeysFor) {
  const auto line =
      parse_command_line({"c.json", "--sequence-length", "2048", "--train-batch-size", "64",
                          "--micro-batch-size=4", "--checkpointing", "true", "--lora-r", "16"});

  EXPECT_EQ(line.sequence_length, 2048);
  EXPECT_EQ(line.train_batch_size, 64);
  EXPECT_EQ(line.micro_batch_size, 4);
  EXPECT_EQ(line.checkpointing, "true");
  EXPECT_EQ(line.lora_rank, 16);
  EXPECT_EQ(faults_of_line({"c.json", "--sequence-length", "1"}),
            Faults{"--sequence-length  is 1; accepted: an integer from 2 to 1000000000"});
}

TEST(ParseCommandLine, TakesGpusForWorkers) {
  EXPECT_EQ(parse_command_line({"c.json", "--plan", "--gpus", "8"}).world_size, 8);
  EXPECT_EQ(parse_command_line({"c.json", "--check", "--gpus", "8", "--world-size", "8"}).gpus, 8);
  EXPECT_EQ(parse_command_line({"c.json", "--gpus", "8"}).gpus, 8);
  EXPECT_EQ(faults_of_line({"c.json", "--plan", "--gpus", "8", "--world-size", "4"}),
            Faults{"--gpus  is 8, but --world-size is 4; give only one of the two"});
  EXPECT_EQ(faults_of_line({"c.json", "--plan", "--gpus", "8", "--hostfile", "h"}),
            Faults{"--hostfile  cannot be combined with --gpus"});
}

TEST(ParseCommandLine, PlansAModelWithoutAFile) {
  const auto line = parse_command_line({"--plan", "--gpus", "8", "--model", "gpt2"});

  EXPECT_EQ(line.action, Action::plan);
  EXPECT_EQ(line.config_path, "");
  EXPECT_EQ(faults_of_line({"--plan", "--gpus", "8"}),
            Faults{"CONFIG.json  is missing, and so is --model NAME, with which --plan needs no "
                   "file; see dstune-mpi --help"});
  EXPECT_EQ(faults_of_line({"--model", "gpt2"}),
            Faults{"CONFIG.json  is missing; see dstune-mpi --help"});
}

TEST(ParseCommandLine, ListsModelsInAForm) {
  EXPECT_EQ(parse_command_line({"--list-models"}).action, Action::list_models);
  EXPECT_EQ(parse_command_line({"--list-models", "--format", "json"}).format, TableFormat::json);
}

TEST(ParseCommandLine, RejectsAnEmptyTrainingCommand) {
  EXPECT_EQ(faults_of_line({"c.json", "--"}),
            Faults{"--  has nothing after it; accepted: the training command"});
}

TEST(ParseCommandLine, RejectsNumbersThatAreNone) {
  for (const char* number : {"", "two", "1.5", "-1", "99999999999999999999", "3x"}) {
    EXPECT_EQ(faults_of_line({"c.json", "--ranks-per-experiment", number}).size(), 1U) << number;
  }
}

TEST(HelpText, FitsEightyColumns) {
  const std::string help = help_text();

  for (const auto& line : split(help, '\n')) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
  }
}

TEST(HelpText, NamesEveryOptionTheExitCodesAndTheSynopsis) {
  const std::string help = help_text();

  for (const char* text :
       {"--model",
        "--results-dir",
        "--resume",
        "--force-resume",
        "--overwrite",
        "--format",
        "--backend",
        "--memory-limit",
        "--ranks-per-experiment",
        "--plan",
        "--world-size",
        "--hostfile",
        "--check",
        "--without",
        "--precision",
        "--share-gpu",
        "--run",
        "--emit",
        "--list-backends",
        "--list-models",
        "--sequence-length",
        "--train-batch-size",
        "--micro-batch-size",
        "--checkpointing",
        "--lora-r",
        "--gpus",
        "--nvme-sweep",
        "--nvme-budget",
        "--verbose",
        "--version",
        "--help",
        "mpirun -hostfile hosts dstune-mpi [options] CONFIG.json",
        "Exit codes: 0 found, 1 internal error, 2 wrong input, 3 nothing fits in memory"}) {
    EXPECT_THAT(help, testing::HasSubstr(text));
  }
}

TEST(HelpText, ItsExamplesAreAccepted) {
  EXPECT_EQ(faults_of_line({"--memory-limit", "4GiB", "examples/gpt2.json"}), Faults{});
  EXPECT_EQ(
      faults_of_line({"--plan", "--world-size", "8", "--model", "gpt2-xl", "examples/gpt2.json"}),
      Faults{});
  EXPECT_EQ(faults_of_line({"--plan", "--gpus", "8", "--model", "Qwen/Qwen2.5-7B-Instruct"}),
            Faults{});
}

}  // namespace
}  // namespace dstune::command_line_test
