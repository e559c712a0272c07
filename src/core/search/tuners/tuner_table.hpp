// Which tuner a configuration asks for, by its name.
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

/// What tuners are made of. What it refers to must outlive them.
struct TunerParts {
  const TuningConfig& config;
  int group_size;
  const std::vector<StagePlan>& stages;
  /// The pool of these stages' spaces, with the micro-batches of `micro_batches`, where it has any,
  /// instead of those that pool_points() lists.
  std::function<Pool(const std::vector<StagePlan>& stages,
                     const std::vector<std::int64_t>& micro_batches)>
      make_pool;
  std::function<std::unique_ptr<Forecaster>()> make_forecaster;
};

/// Pools as make_pool() of the spaces has them; without spaces stages and micro-batches that fit by
/// `predictor`. Forecasts with rates of the backend's order of magnitude.
TunerParts default_parts(const TuningConfig& config, int group_size,
                         const std::vector<StagePlan>& stages, const MemoryPredictor& predictor,
                         const DryRunner& dry_run);

/// dstune.tuner; else autotuning.tuner_type; else "guided".
std::string_view tuner_name(const TuningConfig& config);

/// Whether that tuner searches stage after stage, a stage's space after its micro-batches:
/// DeepSpeed's full mode.
bool is_full_mode(const TuningConfig& config);

/// Whether that tuner chooses from a pool. @throws std::invalid_argument  no tuner is called so
bool has_pool(const TuningConfig& config);

/// make_NAME_tuner() for each tuner of core/config/tuners.hpp, beside its class. `pool` is empty
/// where a tuner has none.
#define DSTUNE_DECLARE_TUNER(name, ...) \
  std::unique_ptr<Tuner> make_##name##_tuner(const TunerParts& parts, Pool pool);
DSTUNE_TUNERS(DSTUNE_DECLARE_TUNER)
#undef DSTUNE_DECLARE_TUNER

/// The tuner called `name` over a pool. @throws std::invalid_argument  no tuner is called so
std::unique_ptr<Tuner> make_pool_tuner(std::string_view name, const TunerParts& parts, Pool pool);

/// The tuner of tuner_name(). "guided" looks at all stages at once; so do DeepSpeed's with fast
/// mode on, and with fast mode off they search each stage's space after its micro-batches
/// (docs/deepspeed-step.md, "DeepSpeed's autotuner: micro-batches"). What chose from a pool is
/// confirmed; dstune.time_budget bounds any.
std::unique_ptr<Tuner> make_tuner(const TunerParts& parts);

}  // namespace dstune
