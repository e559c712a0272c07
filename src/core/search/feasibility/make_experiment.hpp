// The points of a search, and how a point becomes an experiment with a name and a complete
// DeepSpeed JSON.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "core/config/tuning_config.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// A configuration that a tuner wants to have measured, with the run's ranks and machine settings.
struct Candidate {
  std::string name;           ///< the experiment's folder; each measurement has its own name
  DeepSpeedConfig ds_config;  ///< see Experiment
  int repetition = 0;         ///< see Experiment
  Seconds give_up_above = 0;  ///< see Experiment
};

/// The settings that fast mode varies.
struct Point {
  int stage = 0;
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;

  auto operator<=>(const Point&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
};

/// The name that DeepSpeed gives a point: "z2_gas1_tmbspg4" (docs/deepspeed-step.md, "DeepSpeed's
/// autotuner: names").
std::string name_of(const Point& point);

/// The name and the complete DeepSpeed JSON of a point. The batch triple comes first and is
/// consistent for `group_size` ranks; the user's other settings follow in their order, and in
/// zero_optimization they follow the stage.
Candidate make_candidate(const TuningConfig& config, int group_size, const Point& point);

/// The work of an optimizer step of `samples`, in the metric's unit: samples, or for tokens as many
/// as rows of the longest length have. Where lengths vary, that is the same multiple of the real
/// tokens for all experiments.
std::int64_t amount_of(Metric metric, std::int64_t samples, const RunSettings& settings);

/// The experiment that measures `candidate` on a group of the run.
Experiment make_experiment(const TuningConfig& config, int group_size, Candidate candidate);

/// The experiment that measures the point of `stage`, micro-batch and accumulation steps.
Experiment make_experiment(const TuningConfig& config, int group_size, int stage,
                           std::int64_t micro_batch, std::int64_t accumulation_steps);

/// The number of samples per rank and optimizer step that max_train_batch_size allows; 0 if it is
/// not set.
std::int64_t max_samples_per_rank(const TuningConfig& config, int group_size);

/// The largest micro-batch that the user's limits allow; 0 if they do not allow one sample per
/// rank.
std::int64_t largest_allowed_micro_batch(const TuningConfig& config, int group_size);

/// The point that the micro-batch search measures: the user's accumulation steps, or as many as
/// max_train_batch_size leaves room for; as many as make a fixed batch, where the micro-batch
/// divides it.
Point search_point(const TuningConfig& config, int group_size, int stage, std::int64_t micro_batch);

}  // namespace dstune
