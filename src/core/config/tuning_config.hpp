// The checked input of a run. Made once, never changed afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/units.hpp"
#include "core/config/command_line/command_line.hpp"
#include "core/config/model/model_info.hpp"
#include "core/config/offload_search.hpp"
#include "core/config/space/axis.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// throughput is in samples per second, tokens in those without padding per second.
enum class Metric { throughput, latency, flops, tokens };

/// DeepSpeed's "autotuning" section; defaults are its code's (docs/deepspeed-step.md, "DeepSpeed's
/// autotuner: settings").
struct AutotuningConfig {
  bool enabled = false;
  bool fast = true;
  std::string results_dir = kDefaultResultsDir;
  std::string exps_dir = "autotuning_exps";
  /// Whether the file or the command line names results_dir. Where they do not, each run has a
  /// folder of its own in it (core/report/files/run_folder.hpp).
  bool has_own_results_dir = false;
  bool has_own_exps_dir = false;  ///< likewise
  bool overwrite = true;  ///< read, but never obeyed: an existing results_dir needs --overwrite
  int start_profile_step = 3;
  int end_profile_step = 5;
  Metric metric = Metric::throughput;
  std::string tuner_type = "gridsearch";
  bool tuner_type_given = false;
  int tuner_early_stopping = 5;
  int tuner_num_trials = 50;
  std::optional<std::int64_t> max_train_batch_size;
  std::int64_t min_train_batch_size = 1;
  std::int64_t max_train_micro_batch_size_per_gpu = 1024;
  std::int64_t min_train_micro_batch_size_per_gpu = 1;
  int num_tuning_micro_batch_sizes = 3;
  int mp_size = 1;  ///< GPUs that share a model: an experiment has a worker for one of them
  json::object arg_mappings;
  GivenModelInfo model_info;
};

/// "dstune.objective": what is optimized, and what the optimum must keep.
struct Objective {
  std::optional<Metric> metric;     ///< wins over AutotuningConfig's, which it replaces
  std::optional<bool> fixed_batch;  ///< false: the file's train_batch_size is not kept
  std::optional<std::int64_t> train_batch_size;  ///< of every experiment, exactly; none: any
  Bytes memory_headroom = 0;                     ///< per rank: what every experiment leaves free
};

/// Where the JSON of an experiment holds its length, if several are tuned over: no key of
/// DeepSpeed's, and no part of the optimum's file.
inline constexpr const char* kSequenceLengthPointer = "/dstune/sequence_length";

/// The configuration that the file itself is, where it says one: no list, and nothing that decides
/// the step left open.
struct GivenPoint {
  int stage = 0;
  /// One of these may be left to train_batch_size; accumulation steps are 1 where nothing says it.
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> accumulation_steps;
};

/// "dstune.preflight": whether the machine is checked before the search, or only that is done.
enum class Preflight { off, on, only };

struct TuningConfig {
  std::string source;  ///< path of CONFIG.json, for messages
  DeepSpeedConfig
      deepspeed;  ///< the user's file without "autotuning" and of "dstune" with nothing but
                  ///< kCheckpointingPointer and kVersionPointer; integers are integers,
                  ///< every "auto" that the search does not choose is resolved. What the search
                  ///< chooses (stage, micro-batch, train_batch_size) is left out
  AutotuningConfig autotuning;
  RunSettings
      settings;  ///< model: the part that one rank holds (model_parallel.hpp). What the
                 ///< machine decides is open: backend "auto", memory_limit 0, threads,
                 ///< nodes, host_overhead (core/search/feasibility/machine.hpp completes a copy)
  std::string model_source;  ///< ModelRemarks::source: where the model's sizes come from
  std::int64_t num_params =
      0;  ///< of the whole model, as model_info says; 0: the settings' model's
  std::int64_t trainable_num_params = 0;      ///< of the whole model; 0: the settings' model's
  std::optional<HostOverhead> host_overhead;  ///< none: the preset of the backend
  std::optional<AllocatorModel> allocator;    ///< none: what the backend's users run with
  std::optional<Bytes> host_memory_limit;     ///< of a node; none: what its host has
  std::optional<Bytes> pinned_limit;          ///< of a node; none: none beside that
  std::optional<Bytes> drive_limit;           ///< of a node; none: what its drive has
  /// RunSettings::least_warmup_time and least_measure_time; none: what the backend needs to settle.
  std::optional<Seconds> warmup_seconds;
  std::optional<Seconds> measure_seconds;
  std::optional<int> ranks_per_experiment;  ///< GPUs that train; default: all workers
  Seconds worker_timeout = 30;              ///< silence after which a worker counts as lost
  std::vector<int> stages;                  ///< to explore, ascending
  std::vector<std::int64_t> micro_batches;  ///< the user's list, ascending; empty: search
  std::int64_t start_micro_batch =
      1;  ///< the user's micro-batch, tried first; 1 for "auto" and none
  std::int64_t accumulation_steps = 1;
  bool accumulation_is_given = false;  ///< by gradient_accumulation_steps
  bool micro_batch_is_given = false;   ///< by train_micro_batch_size_per_gpu, as a number
  /// What the user trains with now; none where the file leaves it open or lists several.
  std::optional<GivenPoint> given_point;
  /// "bf16" or "fp16", in which is tuned since the file leaves that to the Trainer ("auto");
  /// "": the file or the user says it.
  std::string open_precision;
  /// The lengths to tune over, in the user's order; empty: there is one, or they vary (settings).
  std::vector<std::int64_t> sequence_lengths;
  SpaceConfig space;  ///< what else is searched; `deepspeed` holds the first value of each
  /// What the search offloads beside that; never where `deepspeed` or `space` say it.
  OffloadSearch offload;
  Objective objective;
  Preflight preflight = Preflight::on;
  std::vector<std::string> exclude;  ///< "rank 3", hosts and devices that get no work
  bool learnt = true;            ///< begins with what earlier searches have learnt of the machine
  std::string tuner;             ///< dstune.tuner; "": not given, see tuner_name()
  double stop_at_chance = 0.05;  ///< that any other is better, below which nothing is tried
  std::optional<Seconds> time_budget;        ///< of the whole run; none: as long as it takes
  std::vector<std::string> left_to_trainer;  ///< JSON pointers of "auto" that the optimum keeps
  std::vector<std::string> warnings;         ///< to log once
  std::vector<std::string> notes;  ///< what the optimum must be read with: "tuned without ..."
};

/// Reads and checks CONFIG.json with the options of the command line, which win.
/// @throws ConfigError  with every fault of the file
TuningConfig read_tuning_config(const CommandLine& options);

}  // namespace dstune
