// The command line, parsed once into plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/config/command_line/output_forms.hpp"

namespace dstune {

/// What --nvme-sweep may write where nothing else is said, and the least with which it measures.
inline constexpr Bytes kDefaultNvmeBudget = Bytes{4} << 30U;
inline constexpr Bytes kLeastNvmeBudget = Bytes{256} << 20U;

/// Where runs have their folders if nobody names a results_dir.
inline constexpr const char* kDefaultResultsDir = "autotuning_results";

struct CommandLine {
  enum class Action {
    tune,
    plan,
    check,
    explain,
    status,
    list_backends,
    list_models,
    nvme_sweep,
    help,
    version
  };

  Action action = Action::tune;
  std::string config_path;  ///< empty: none, the configuration is {} (--plan with --model)

  std::optional<std::string> model;              ///< --model: preset, name on the hub, or path
  std::optional<std::int64_t> sequence_length;   ///< --sequence-length
  std::optional<std::int64_t> train_batch_size;  ///< --train-batch-size
  std::optional<std::int64_t> micro_batch_size;  ///< --micro-batch-size
  std::optional<std::int64_t> lora_rank;         ///< --lora-r
  /// --checkpointing: a JSON value of dstune.activation_checkpointing, as text.
  std::optional<std::string> checkpointing;
  std::optional<Bytes> memory_limit;        ///< --memory-limit
  std::optional<int> ranks_per_experiment;  ///< --ranks-per-experiment
  std::optional<std::string> backend;       ///< --backend
  std::optional<std::string>
      results_dir;  ///< --results-dir; exps_dir is in it unless the file says so
  std::optional<std::string> precision;            ///< --precision: bf16, fp16 or fp32
  std::optional<std::string> installed_deepspeed;  ///< --installed-deepspeed: loses to the file
  std::vector<std::string> without;                ///< --without: keys to leave out of the file
  bool resume = false;
  bool requeued = false;  ///< --requeued: as resume where results_dir is named
  bool overwrite = false;
  bool force_resume = false;  ///< --force-resume: mix results of another model or machine
  bool retry_failed = false;  ///< --retry-failed: with --resume, measure again what failed
  bool share_gpu = false;     ///< --share-gpu: several workers may train on one GPU
  bool verbose = false;
  TableFormat format = TableFormat::table;
  bool wide = false;  ///< --wide: the table with every column, whatever its width
  ProgressStyle progress = ProgressStyle::automatic;
  /// --columns: of a terminal. Table and lines of progress are no wider (default: kLineWidth), and
  /// the log's lines are broken there (default: warnings at kLineWidth, others nowhere).
  std::optional<std::size_t> columns;

  /// --world-size, or --gpus: the workers of --plan and --check.
  std::optional<int> world_size;
  std::optional<int> gpus;              ///< --gpus: how many workers a run has to have
  std::optional<std::string> hostfile;  ///< --plan, --check: instead of --world-size

  std::optional<std::string> explain;  ///< --explain: an experiment of results_dir, or of --plan

  std::optional<std::string> status_dir;  ///< --status: the results_dir that is asked about, or the
                                          ///< folder of runs, whose last is meant

  std::optional<std::string> nvme_sweep;   ///< --nvme-sweep: the directory to measure
  Bytes nvme_budget = kDefaultNvmeBudget;  ///< --nvme-budget: the most that it writes

  std::vector<std::string> training_command;  ///< after "--"
  bool run = false;                           ///< --run: start it with the optimum
  std::set<EmittedForm> emit;                 ///< --emit: the optimum in these forms too
};

/// @param arguments  argv without the program's name
/// @throws ConfigError  with every fault (source "command line")
CommandLine parse_command_line(const std::vector<std::string>& arguments);

/// Text of --help at 80 columns: groups in the order of a run, every default, exit codes, examples.
std::string help_text();
/// Text of --version: name, version, MPI and Boost versions as compiled are added by main.
std::string version_text();

}  // namespace dstune
