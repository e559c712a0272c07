#include "core/search/tuners/tuner_table.hpp"

#include <stdexcept>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/search/feasibility/micro_batches.hpp"
#include "core/search/predict/forecaster.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/search/tuners/baseline.hpp"
#include "core/search/tuners/confirmation.hpp"
#include "core/search/tuners/fast_mode.hpp"
#include "core/search/tuners/time_budget.hpp"

namespace dstune {
namespace {

/// The share of the time budget for the search; the rest is for the confirmation.
constexpr double kShareOfSearch = 0.9;

using MakeTuner = std::unique_ptr<Tuner> (*)(const TunerParts&, Pool);

#define DSTUNE_MAKE_TUNER(name, ...) make_##name##_tuner,
/// The functions that make tuners, in the order of kTuners.
constexpr MakeTuner kMakeTuner[] = {DSTUNE_TUNERS(DSTUNE_MAKE_TUNER)};
#undef DSTUNE_MAKE_TUNER

const TunerTraits& traits_of(std::string_view name) {
  const TunerTraits* found = find_row(kTuners, name);
  if (found == nullptr) throw std::invalid_argument(concat("no tuner is called ", name));
  return *found;
}

std::unique_ptr<Forecaster> estimating(const TuningConfig& config) {
  return std::make_unique<StepTimeForecaster>(StepTimePredictor(estimated_rates(config.settings)));
}

std::unique_ptr<Tuner> make_search(const TunerParts& parts) {
  const auto name = tuner_name(parts.config);
  if (!is_full_mode(parts.config)) {
    return make_pool_tuner(name, parts, parts.make_pool(parts.stages, {}));
  }
  return std::make_unique<StageSweep>(
      parts.config, parts.group_size, parts.stages,
      [parts, name](const StagePlan& plan, const std::vector<std::int64_t>& micro_batches) {
        return make_pool_tuner(name, parts, parts.make_pool({plan}, micro_batches));
      });
}

/// The pool where there are no spaces: those of pool_points() that fit by `predictor` on rank 0.
Pool pool_of_points(const TuningConfig& config, int group_size,
                    const std::vector<StagePlan>& stages, const MemoryPredictor& predictor) {
  Pool pool;
  for (const StagePlan& plan : stages) {
    if (!plan.feasible) continue;
    for (const Point& point : pool_points(config, group_size, plan)) {
      Candidate candidate = make_candidate(config, group_size, point);
      Experiment experiment = make_experiment(config, group_size, candidate);
      if (experiment.settings.memory_limit == 0) experiment.settings.memory_limit = kUnlimited;
      auto outcome = predictor(experiment, 0);
      auto* dry = std::get_if<Measured>(&outcome);
      if (dry == nullptr) continue;
      pool.candidates.push_back({std::move(candidate), point, {}, 0, std::move(*dry)});
    }
  }
  return pool;
}

}  // namespace

TunerParts default_parts(const TuningConfig& config, int group_size,
                         const std::vector<StagePlan>& stages, const MemoryPredictor& predictor,
                         const DryRunner& dry_run) {
  const auto make_pool = [&config, group_size, predictor, dry_run](
                             const std::vector<StagePlan>& plans,
                             const std::vector<std::int64_t>& micro_batches) {
    TuningConfig narrowed = config;
    if (!micro_batches.empty()) narrowed.micro_batches = micro_batches;
    return config.space.empty() ? pool_of_points(narrowed, group_size, plans, predictor)
                                : dstune::make_pool(narrowed, group_size, plans, dry_run);
  };
  return {config, group_size, stages, make_pool, [&config] { return estimating(config); }};
}

std::string_view tuner_name(const TuningConfig& config) {
  if (!config.tuner.empty()) return config.tuner;
  if (!config.autotuning.tuner_type_given) return "guided";
  return config.autotuning.tuner_type;
}

bool is_full_mode(const TuningConfig& config) {
  return traits_of(tuner_name(config)).is_deepspeeds && !config.autotuning.fast &&
         !config.objective.train_batch_size;
}

bool has_pool(const TuningConfig& config) { return traits_of(tuner_name(config)).has_pool; }

std::unique_ptr<Tuner> make_pool_tuner(std::string_view name, const TunerParts& parts, Pool pool) {
  TunerParts own = parts;
  // Where there is nothing to choose, no machine is measured for the sake of the choice.
  if (pool.candidates.size() <= 1) {
    own.make_forecaster = [&config = parts.config] { return estimating(config); };
  }
  return kMakeTuner[&traits_of(name) - kTuners](own, std::move(pool));
}

std::unique_ptr<Tuner> make_tuner(const TunerParts& parts) {
  const auto budget = parts.config.time_budget;
  std::unique_ptr<Tuner> tuner;
  if (!has_pool(parts.config)) {
    tuner = make_pool_tuner(tuner_name(parts.config), parts, {});
  } else {
    tuner = make_search(parts);
    if (budget) tuner = std::make_unique<TimeBudget>(std::move(tuner), *budget, kShareOfSearch);
    tuner = std::make_unique<Confirmation>(std::move(tuner), parts.config.autotuning.metric);
  }
  if (auto baseline = baseline_of(parts.config, parts.group_size)) {
    tuner = std::make_unique<BaselineTuner>(std::move(tuner), *std::move(baseline),
                                            parts.config.autotuning.metric);
  }
  if (budget) tuner = std::make_unique<TimeBudget>(std::move(tuner), *budget);
  return tuner;
}

}  // namespace dstune
