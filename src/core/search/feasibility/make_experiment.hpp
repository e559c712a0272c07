// Points of a search, and from one to its experiment: its name and its complete DeepSpeed JSON.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "core/config/tuning_config.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// What a tuner wants measured: ranks and machine settings are the run's.
struct Candidate {
  std::string name;           ///< folder of the experiment; one name, one measurement
  DeepSpeedConfig ds_config;  ///< see Experiment
  int repetition = 0;         ///< see Experiment
};

/// What fast mode varies.
struct Point {
  int stage = 0;
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;

  auto operator<=>(const Point&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
};

/// "z2_gas1_tmbspg4" (docs/deepspeed-step.md, "DeepSpeed's autotuner: names").
std::string name_of(const Point& point);

/// Its name and complete DeepSpeed JSON. The batch triple comes first and is consistent for
/// `group_size` ranks; the user's other settings follow in their order, those of zero_optimization
/// behind the stage.
Candidate make_candidate(const TuningConfig& config, int group_size, const Point& point);

/// What an optimizer step of `samples` does, in the metric's unit: samples, or for tokens those of
/// their longest rows, which is the same multiple of what counts wherever lengths vary.
std::int64_t amount_of(Metric metric, std::int64_t samples, const RunSettings& settings);

/// `candidate` on a group of the run.
Experiment make_experiment(const TuningConfig& config, int group_size, Candidate candidate);

/// The experiment of `stage`, micro-batch and accumulation.
Experiment make_experiment(const TuningConfig& config, int group_size, int stage,
                           std::int64_t micro_batch, std::int64_t accumulation_steps);

/// Micro-batches per rank and optimizer step that max_train_batch_size allows; 0 if it is not set.
std::int64_t max_samples_per_rank(const TuningConfig& config, int group_size);

/// The largest micro-batch that the user's limits allow (0: not even one sample per rank).
std::int64_t largest_allowed_micro_batch(const TuningConfig& config, int group_size);

/// The point that the micro-batch search measures: the user's accumulation steps, or as many as
/// max_train_batch_size leaves room for.
Point search_point(const TuningConfig& config, int group_size, int stage, std::int64_t micro_batch);

}  // namespace dstune
