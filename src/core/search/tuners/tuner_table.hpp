// The tuners by name, and the one for which a configuration asks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/tuners.hpp"
#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/predict/forecaster.hpp"
#include "core/search/space/pool.hpp"
#include "core/search/tuners/tuner.hpp"

namespace dstune {

/// The parts of which tuners are made. The objects to which they refer must outlive the tuners.
struct TunerParts {
  const TuningConfig& config;
  int group_size;
  const std::vector<StagePlan>& stages;
  /// Makes the pool of these stages' spaces, with `micro_batches` instead of those that
  /// pool_points() lists, unless it is empty.
  std::function<Pool(const std::vector<StagePlan>& stages,
                     const std::vector<std::int64_t>& micro_batches)>
      make_pool;
  std::function<std::unique_ptr<Forecaster>()> make_forecaster;
};

/// Parts whose pools come from make_pool(), or without spaces from the stages and micro-batches
/// that fit by `predictor`. Their forecasters have rates of the backend's order of magnitude.
TunerParts default_parts(const TuningConfig& config, int group_size,
                         const std::vector<StagePlan>& stages, const MemoryPredictor& predictor,
                         const DryRunner& dry_run);

/// The value of dstune.tuner; else that of autotuning.tuner_type; else "guided".
std::string_view tuner_name(const TuningConfig& config);

/// Whether the tuner of tuner_name() searches stage after stage, a stage's space after its
/// micro-batches, which is DeepSpeed's full mode.
bool is_full_mode(const TuningConfig& config);

/// Whether the tuner of tuner_name() chooses from a pool. @throws std::invalid_argument  if no
/// tuner has that name
bool has_pool(const TuningConfig& config);

/// Declares make_NAME_tuner() for each tuner of core/config/tuners.hpp; each is defined beside its
/// class. `pool` is empty where a tuner has none.
#define DSTUNE_DECLARE_TUNER(name, ...) \
  std::unique_ptr<Tuner> make_##name##_tuner(const TunerParts& parts, Pool pool);
DSTUNE_TUNERS(DSTUNE_DECLARE_TUNER)
#undef DSTUNE_DECLARE_TUNER

/// The tuner called `name` over a pool. @throws std::invalid_argument  if no tuner has that name
std::unique_ptr<Tuner> make_pool_tuner(std::string_view name, const TunerParts& parts, Pool pool);

/// The tuner of tuner_name(), after the user's own configuration if the file says one
/// (BaselineTuner). "guided" looks at all stages at once. So do DeepSpeed's tuners with
/// fast mode on; with fast mode off they search each stage's space after its micro-batches
/// (docs/deepspeed-step.md, "DeepSpeed's autotuner: micro-batches"). The choice of a tuner over a
/// pool is confirmed; dstune.time_budget bounds every tuner.
std::unique_ptr<Tuner> make_tuner(const TunerParts& parts);

}  // namespace dstune
