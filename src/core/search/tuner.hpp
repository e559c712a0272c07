// DeepSpeed's fast mode: which stage and micro-batch size, with its known faults mended.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal.hpp"
#include "core/search/make_experiment.hpp"
#include "core/search/memory_predictor.hpp"
#include "core/search/scheduler.hpp"
#include "core/search/score.hpp"
#include "core/search/stage_plan.hpp"

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
  bool stopped = false;         ///< a signal, or too few workers, ended the search early

  /// Too few workers did.
  std::optional<Shortage> shortage;
  /// Then: the largest group of those that are left in which some stage fits; 0: none.
  int largest_group = 0;

  /// No best, and memory alone is why: no stage is feasible, or what ran was out of memory. With
  /// neither best nor this (nor `stopped`), experiments failed for other reasons.
  bool nothing_fits = false;
};

/// Parameters by the model, activations by the stages' dry runs.
ModelInfo predict_model_info(const TuningConfig& config, const std::vector<StagePlan>& stages);

/// The experiments that tune() would explore if every one that fits ran and none were better than
/// another (the largest such set without a measurement): --plan.
std::vector<Experiment> plan_experiments(const TuningConfig& config, int group_size,
                                         const std::vector<StagePlan>& stages);

/// Runs the search: the stages in ascending order, each from the largest micro-batch
/// of the last one that was better (or larger), skipping those that fit fewer micro-batches. One
/// experiment is better than another only beyond noise (is_clearly_better), so the smaller stage
/// wins ties. The answer does not depend on how many experiments run at once: where several did,
/// the best of each stage is measured once more alone (choose_finalists), and these decide.
///
/// tuner_num_trials bounds the experiments that decide (those fetched ahead on idle ranks not
/// counted); tuner_early_stopping belongs to the full mode and does nothing here.
/// @throws ConfigError  as plan_stages does
TuningResult tune(const TuningConfig& config, int group_size, Scheduler& scheduler,
                  const MemoryPredictor& predictor = make_memory_predictor());

}  // namespace dstune
