// A tuning run: a Tuner says what to measure next, the scheduler measures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/schedule/scheduler.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// profile_model_info/model_info.json: known before anything runs.
struct ModelInfo {
  std::int64_t num_params = 0;
  std::int64_t trainable_num_params = 0;
  /// What one sample more adds to the activations, in the stage where that is most.
  Bytes activation_bytes_per_micro_batch = 0;
};

struct TuningResult {
  ModelInfo model_info;
  std::vector<StagePlan> stages;
  std::optional<Record> best;   ///< none: nothing fits, or everything failed
  std::vector<Record> records;  ///< in the order they finished
  bool stopped = false;         ///< a signal, too few workers or wrong sums ended the search early

  /// Too few workers did.
  std::optional<Shortage> shortage;
  /// Then: the largest group of those that are left in which some stage fits; 0: none.
  int largest_group = 0;

  /// Collectives gave wrong sums, and so the search ended early: which ranks', and how.
  std::optional<std::string> wrong_sums;
  /// Tuner::remarks()
  std::vector<std::string> remarks;
  /// Scheduler::lost_devices()
  std::vector<std::string> lost_devices;
  /// Scheduler::slow_workers()
  std::vector<std::string> slow_workers;

  /// No best, and memory alone is why: no stage is feasible, or what ran was out of memory. With
  /// neither best nor this (nor `stopped`), experiments failed for other reasons.
  bool nothing_fits = false;
};

/// Parameters by the model, activations by the stages' dry runs.
ModelInfo predict_model_info(const TuningConfig& config, const std::vector<StagePlan>& stages);

/// The experiments that fast mode would explore if every one that fits ran and none were better
/// than another (the largest such set without a measurement): --plan.
std::vector<Experiment> plan_experiments(const TuningConfig& config, int group_size,
                                         const std::vector<StagePlan>& stages);

/// What the tuner that the configuration asks for would choose from; none of fast mode.
std::optional<Pool> plan_pool(const TuningConfig& config, int group_size,
                              const std::vector<StagePlan>& stages,
                              const MemoryPredictor& predictor = make_memory_predictor(),
                              const DryRunner& dry_run = make_dry_runner());

std::vector<Experiment> experiments_of(const TuningConfig& config, int group_size,
                                       const Pool& pool);

/// Runs what the tuner asks for until it is finished.
/// @throws ConfigError  as plan_stages does
TuningResult tune(const TuningConfig& config, int group_size, Scheduler& scheduler,
                  const MemoryPredictor& predictor = make_memory_predictor(),
                  const DryRunner& dry_run = make_dry_runner());

}  // namespace dstune
