// A tuning run: a Tuner says what to measure next, and the scheduler measures it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/device/rates/host_rates.hpp"
#include "core/report/files/predicted_steps.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/tables/axes.hpp"
#include "core/report/tables/progress.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/predict/step_part.hpp"
#include "core/search/schedule/scheduler.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// The content of profile_model_info/model_info.json, which is known before anything runs.
struct ModelInfo {
  std::int64_t num_params = 0;
  std::int64_t trainable_num_params = 0;
  /// The bytes that one more sample adds to the activations, in the stage where these are most.
  Bytes activation_bytes_per_micro_batch = 0;
};

struct TuningResult {
  ModelInfo model_info;
  std::vector<StagePlan> stages;
  std::optional<Record> best;   ///< none: nothing fits, or everything failed
  std::vector<Record> records;  ///< in the order in which they finished
  /// The settings in which the configurations of the pools differ, whichever were measured.
  std::vector<ResultAxis> searched = {};
  bool stopped = false;  ///< a signal, too few workers or wrong sums ended the search early

  /// The shortage, if too few workers ended the search.
  std::optional<Shortage> shortage;
  /// After a shortage: the size of the largest group of the remaining workers in which some stage
  /// fits; 0: none.
  int largest_group = 0;

  /// If wrong sums of collectives ended the search early: which ranks had them, and how wrong they
  /// were.
  std::optional<std::string> wrong_sums;
  /// The host's rates, if they were measured (RunRates::host()).
  std::optional<HostRates> host_rates = {};
  /// The result of Tuner::predictions().
  std::vector<PredictedStep> predictions = {};
  /// The result of Tuner::remarks().
  std::vector<std::string> remarks;
  /// The result of Scheduler::lost_devices().
  std::vector<std::string> lost_devices;
  /// The result of Scheduler::slow_workers().
  std::vector<std::string> slow_workers;

  /// True if there is no best and memory alone is why: no stage is feasible, or all that ran was
  /// out of memory. Without a best, this or `stopped`, experiments failed for other reasons.
  bool nothing_fits = false;
  Stores full = {};  ///< what was too small for stages, for configurations, or in experiments
};

/// Takes the parameters from the model, and the activations from the stages' dry runs.
ModelInfo predict_model_info(const TuningConfig& config, const std::vector<StagePlan>& stages);

/// The experiments that fast mode would explore if every one that fits ran and none were better
/// than another (the largest such set without a measurement): --plan.
std::vector<Experiment> plan_experiments(const TuningConfig& config, int group_size,
                                         const std::vector<StagePlan>& stages);

/// The pool from which the tuner of the configuration would choose; none for fast mode.
std::optional<Pool> plan_pool(const TuningConfig& config, int group_size,
                              const std::vector<StagePlan>& stages,
                              const MemoryPredictor& predictor = make_memory_predictor(),
                              const DryRunner& dry_run = make_dry_runner());

std::vector<Experiment> experiments_of(const TuningConfig& config, int group_size,
                                       const Pool& pool);

/// Is called before the scheduler runs what a tuner asks for.
using AheadListener = std::function<void(const Ahead& ahead)>;

/// Runs the experiments for which the tuner asks, until it is finished.
/// @param start  see StepTimePredictor
/// @param tell   hears what is to come; it may be empty
/// @throws ConfigError  as plan_stages() does
TuningResult tune(const TuningConfig& config, int group_size, Scheduler& scheduler,
                  const MemoryPredictor& predictor = make_memory_predictor(),
                  const DryRunner& dry_run = make_dry_runner(), const PartFactors& start = kAsRated,
                  const AheadListener& tell = {});

}  // namespace dstune
