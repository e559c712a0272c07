#include "core/search/tuner/tuner_table.hpp"

#include <stdexcept>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/search/plan/batch_points.hpp"
#include "core/search/predict/estimated_rates.hpp"
#include "core/search/tuner/confirmation.hpp"
#include "core/search/tuner/fast_mode.hpp"
#include "core/search/tuner/grid_tuner.hpp"
#include "core/search/tuner/guided_tuner.hpp"
#include "core/search/tuner/model_based_tuner.hpp"
#include "core/search/tuner/random_tuner.hpp"
#include "core/search/tuner/step_time_forecaster.hpp"
#include "core/search/tuner/time_budget.hpp"

namespace dstune {
namespace {

/// Of the budget; the rest is for the confirmation.
constexpr double kShareOfSearch = 0.9;

using MakeTuner = std::unique_ptr<Tuner> (*)(const TunerParts&, Pool);

template <class TunerType>
std::unique_ptr<Tuner> make_plain(const TunerParts& parts, Pool pool) {
  return std::make_unique<TunerType>(parts.config, parts.group_size, std::move(pool));
}

template <class TunerType>
std::unique_ptr<Tuner> make_with_forecaster(const TunerParts& parts, Pool pool) {
  return std::make_unique<TunerType>(parts.config, parts.group_size, std::move(pool),
                                     parts.make_forecaster());
}

struct Entry {
  std::string_view name;
  MakeTuner make;
  bool by_stage;  ///< searches stage after stage with fast mode off, as DeepSpeed does
};

constexpr Entry kTuners[] = {
    {"gridsearch", make_plain<GridTuner>, true},
    {"random", make_plain<RandomTuner>, true},
    {"model_based", make_with_forecaster<ModelBasedTuner>, true},
    {"guided", make_with_forecaster<GuidedTuner>, false},
};

const Entry& find_entry(std::string_view name) {
  for (const Entry& entry : kTuners) {
    if (entry.name == name) return entry;
  }
  throw std::invalid_argument(concat("no tuner is called ", name));
}

std::unique_ptr<Tuner> make_search(const TunerParts& parts) {
  const auto& entry = find_entry(tuner_name(parts.config));
  if (!entry.by_stage || parts.config.autotuning.fast) {
    return entry.make(parts, parts.make_pool(points_of_all_stages(parts)));
  }
  return std::make_unique<FastMode>(parts.config, parts.group_size, parts.stages,
                                    [parts, &entry](const std::vector<Point>& points) {
                                      return entry.make(parts, parts.make_pool(points));
                                    });
}

}  // namespace

TunerParts default_parts(const TuningConfig& config, int group_size,
                         const std::vector<StagePlan>& stages, const MemoryPredictor& predictor) {
  const auto make_pool = [&config, group_size, predictor](const std::vector<Point>& points) {
    Pool pool;
    for (const Point& point : points) {
      Candidate candidate = make_candidate(config, group_size, point);
      auto outcome = predictor(make_experiment(config, group_size, candidate), 0);
      auto* dry = std::get_if<Measured>(&outcome);
      if (dry == nullptr) continue;
      pool.candidates.push_back({std::move(candidate), point, {}, std::move(*dry)});
    }
    return pool;
  };
  const auto make_forecaster = [&config] {
    return std::make_unique<StepTimeForecaster>(
        StepTimePredictor(estimated_rates(config.settings)));
  };
  return {config, group_size, stages, make_pool, make_forecaster};
}

std::vector<Point> points_of_all_stages(const TunerParts& parts) {
  std::vector<Point> points;
  for (const StagePlan& plan : parts.stages) {
    const auto more = batch_points(parts.config, parts.group_size, plan);
    points.insert(points.end(), more.begin(), more.end());
  }
  return points;
}

std::string_view tuner_name(const TuningConfig& config) {
  if (!config.tuner.empty()) return config.tuner;
  if (config.autotuning.tuner_type_given) return config.autotuning.tuner_type;
  return config.autotuning.fast && !config.objective.train_batch_size ? kFastMode : "guided";
}

std::unique_ptr<Tuner> make_tuner(const TunerParts& parts) {
  const auto budget = parts.config.time_budget;
  const bool is_fast = tuner_name(parts.config) == kFastMode;
  std::unique_ptr<Tuner> tuner;
  if (is_fast) {
    tuner = std::make_unique<FastMode>(parts.config, parts.group_size, parts.stages);
  } else {
    tuner = make_search(parts);
    if (budget) tuner = std::make_unique<TimeBudget>(std::move(tuner), *budget, kShareOfSearch);
    tuner = std::make_unique<Confirmation>(std::move(tuner), parts.config.autotuning.metric);
  }
  if (budget) tuner = std::make_unique<TimeBudget>(std::move(tuner), *budget);
  return tuner;
}

}  // namespace dstune
