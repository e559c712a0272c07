// Which tuner a configuration asks for, by its name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/plan/memory_predictor.hpp"
#include "core/search/plan/stage_plan.hpp"
#include "core/search/space/pool.hpp"
#include "core/search/tuner/forecaster.hpp"
#include "core/search/tuner/tuner.hpp"

namespace dstune {

/// What tuners are made of. What it refers to must outlive them.
struct TunerParts {
  const TuningConfig& config;
  int group_size;
  const std::vector<StagePlan>& stages;
  /// The pool of the spaces of the points' stages, with these points alone.
  std::function<Pool(const std::vector<Point>& points)> make_pool;
  std::function<std::unique_ptr<Forecaster>()> make_forecaster;
};

/// Parts with nothing but stages and micro-batches in the pool, by dry run, and a predictor with
/// rates of the backend's order of magnitude.
TunerParts default_parts(const TuningConfig& config, int group_size,
                         const std::vector<StagePlan>& stages, const MemoryPredictor& predictor);

constexpr std::string_view kFastMode = "fast";

/// dstune.tuner; else autotuning.tuner_type, where it is given; else "fast" in fast mode, and
/// "guided".
std::string_view tuner_name(const TuningConfig& config);

/// The micro-batches of all stages that a pool is made of.
std::vector<Point> points_of_all_stages(const TunerParts& parts);

/// The tuner of that name. "guided" looks at all stages at once; so do DeepSpeed's with fast mode
/// on, and with fast mode off they search each stage's space after its micro-batches (zero-step.md
/// 6.5). All but "fast" confirm their optimum; dstune.time_budget bounds any.
std::unique_ptr<Tuner> make_tuner(const TunerParts& parts);

}  // namespace dstune
