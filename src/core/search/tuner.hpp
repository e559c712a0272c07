// DeepSpeed's fast mode: which stage and micro-batch size, with its known faults mended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal.hpp"
#include "core/search/scheduler.hpp"

namespace dstune {

/// Profile run and what follows from it (profile_model_info/model_info.json).
struct ModelInfo {
  std::int64_t num_params = 0;
  std::int64_t trainable_num_params = 0;
  Bytes activation_bytes_per_micro_batch =
      0;  ///< peak of activations and temporaries at micro-batch 1
};

/// One stage's memory at micro-batch 1 and how many micro-batches fit, by formula and dry run.
struct StagePlan {
  int stage = 0;
  Bytes memory_bytes_per_rank = 0;  ///< model states, buckets and step temporaries; no activations
  Bytes activation_bytes_per_micro_batch = 0;
  bool feasible = false;
  std::int64_t max_micro_batch =
      0;  ///< largest that fits by dry run, within the user's limits; 0: none
};

struct TuningResult {
  ModelInfo model_info;
  std::vector<StagePlan> stages;
  std::optional<Record> best;   ///< none: nothing fits (or everything failed)
  std::vector<Record> records;  ///< in the order they finished, profile run included
  bool stopped = false;         ///< a signal ended the search early
};

/// The value of `metric`, larger is better (latency is negated seconds).
double score(Metric metric, const Measured& measured);

/// What --plan prints and tune() starts from. `group_size` = ranks per experiment. Local: runs
/// nothing.
std::vector<StagePlan> plan_stages(const TuningConfig& config, int group_size);

/// The experiments that tune() would explore if every one that fits ran and none were better than
/// another (the largest such set without a measurement): --plan.
std::vector<Experiment> plan_experiments(const TuningConfig& config, int group_size,
                                         const std::vector<StagePlan>& stages);

/// The experiment of `stage`, micro-batch and accumulation: name and complete DeepSpeed JSON
/// (zero-step.md 6.10; the user's other settings kept).
Experiment make_experiment(const TuningConfig& config, int group_size, int stage,
                           std::int64_t micro_batch, std::int64_t accumulation_steps);

/// Runs the search.
TuningResult tune(const TuningConfig& config, int group_size, Scheduler& scheduler);

}  // namespace dstune
