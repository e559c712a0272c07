#include "core/search/tuners/tune.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/predict/forecaster.hpp"
#include "core/search/predict/measured_rates.hpp"
#include "core/search/schedule/machine_watch.hpp"
#include "core/search/tuners/baseline.hpp"
#include "core/search/tuners/fast_mode.hpp"
#include "core/search/tuners/tuner.hpp"
#include "core/search/tuners/tuner_table.hpp"
#include "core/search/tuners/whole_step.hpp"
#include "core/train/families/families.hpp"
#include "core/train/micro_steps.hpp"

namespace dstune {
namespace {

void warn_of_fast_mode(const TuningConfig& config) {
  if (has_pool(config) || config.space.empty()) return;
  log_warning(concat("dstune.tuner ", tuner_name(config),
                     " measures stages and micro-batches with the first value of every list; "
                     "the other tuners search the whole space"));
}

// Whether memory alone is why nothing was found. A stage that is not modelled says nothing about
// memory, so that only the others count.
bool is_memory_alone(const std::vector<StagePlan>& stages, const std::vector<Record>& records) {
  const bool has_modelled = std::any_of(
      stages.begin(), stages.end(), [](const StagePlan& plan) { return plan.unsupported.empty(); });
  return has_modelled && std::all_of(records.begin(), records.end(), [](const Record& record) {
           return std::holds_alternative<OutOfMemory>(record.outcome) ||
                  std::holds_alternative<Skipped>(record.outcome);
         });
}

/// What was too small for the candidates or, where there are none, of the stages, and for the
/// experiments that ran out of it.
Stores full_of(const TuningConfig& config, const std::vector<StagePlan>& stages,
               const Stores& full_for_candidates, const std::vector<Record>& records) {
  Stores full = full_for_candidates;
  if (full.none()) {
    for (const StagePlan& plan : stages) full |= full_stores(plan, config.settings.memory_limit);
  }
  for (const Record& record : records) {
    const auto* const fault = std::get_if<OutOfMemory>(&record.outcome);
    if (fault != nullptr) full.set(number_of(store_of(*fault, config.settings)));
  }
  return full;
}

int largest_group(const TuningConfig& config, int workers, const MemoryPredictor& predictor) {
  for (int ranks = workers; ranks > 0; --ranks) {
    try {
      const auto plans = plan_stages(config, ranks, predictor);
      if (std::any_of(plans.begin(), plans.end(),
                      [](const StagePlan& plan) { return plan.feasible; })) {
        return ranks;
      }
    } catch (const ConfigError&) {
      continue;  // the user's batch sizes leave no micro-batch for so few ranks
    }
  }
  return 0;
}

/// A record that replaces a run which fits and is as good as any other.
Record pretend(const Experiment& experiment) {
  Measured measured;
  measured.steps = 1;
  measured.step_time = {1, 1, 1, 0};
  measured.samples_per_s = 1;
  measured.flops_per_s_per_rank = 1;
  // Leaves no room for larger micro-batches.
  measured.peak_memory.allocated = std::numeric_limits<Bytes>::max();
  Experiment named;  // without the configuration, of which every record would hold a second copy
  named.name = experiment.name;
  return {named, measured, {}, 0, 0};
}

}  // namespace

ModelInfo predict_model_info(const TuningConfig& config, const std::vector<StagePlan>& stages) {
  ModelInfo info;
  const auto parameters = make_model_parameters(config.settings.model);
  info.num_params = config.num_params > 0 ? config.num_params : parameters.total();
  info.trainable_num_params = config.trainable_num_params;
  if (info.trainable_num_params == 0) {
    const bool is_everything = config.settings.model.fine_tuning.is_everything();
    info.trainable_num_params = is_everything ? info.num_params : parameters.trainable_total();
  }
  for (const auto& plan : stages) {
    info.activation_bytes_per_micro_batch =
        std::max(info.activation_bytes_per_micro_batch, plan.activation_bytes_per_micro_batch);
  }
  return info;
}

std::optional<Pool> plan_pool(const TuningConfig& config, int group_size,
                              const std::vector<StagePlan>& stages,
                              const MemoryPredictor& predictor, const DryRunner& dry_run) {
  if (!has_pool(config)) return std::nullopt;
  return default_parts(config, group_size, stages, predictor, dry_run).make_pool(stages, {});
}

std::vector<Experiment> experiments_of(const TuningConfig& config, int group_size,
                                       const Pool& pool) {
  std::vector<Experiment> experiments;
  for (const PooledCandidate& pooled : pool.candidates) {
    experiments.push_back(make_experiment(config, group_size, pooled.candidate));
  }
  return experiments;
}

std::vector<Experiment> plan_experiments(const TuningConfig& config, int group_size,
                                         const std::vector<StagePlan>& stages) {
  std::vector<Experiment> experiments;
  auto supported = stages;
  std::erase_if(supported, [](const StagePlan& plan) { return !plan.unsupported.empty(); });
  FastMode tuner(config, group_size, supported);
  for (auto candidates = tuner.next(1); !candidates.empty(); candidates = tuner.next(1)) {
    for (Candidate& candidate : candidates) {
      experiments.push_back(make_experiment(config, group_size, std::move(candidate)));
      tuner.learn(pretend(experiments.back()));
    }
  }
  return experiments;
}

namespace {

/// Runs the references that are due before anybody learns from `records`, and marks these.
/// @returns false if the run was stopped meanwhile
bool look_after(MachineWatch& watch, Scheduler& scheduler, std::vector<Record>& records) {
  bool goes_on = true;
  while (goes_on) {
    const auto reference = watch.due(records);
    if (!reference) break;
    const auto done = scheduler.run({*reference});
    goes_on = !done.empty();
    if (goes_on) watch.learn(done.front());
  }
  watch.mark(records);
  return goes_on;
}

/// The share of a step's micro-steps that run (MicroSteps::some).
double share_that_runs(const Experiment& experiment) {
  if (experiment.settings.whole_steps || experiment.settings.lengths.varies()) return 1;
  const std::int64_t all = experiment.ds_config.step().accumulation_steps;
  const std::int64_t left_out = plan_micro_steps(all, MicroSteps::some).left_out;
  return static_cast<double>(all - left_out) / static_cast<double>(all);
}

/// What one experiment takes where its step takes `whole_step`; to set it up takes longer.
Seconds experiment_time(const Experiment& experiment, Seconds whole_step) {
  const RunSettings& settings = experiment.settings;
  const Seconds step_time = share_that_runs(experiment) * whole_step;
  return std::max(settings.least_warmup_time, settings.warmup_steps * step_time) +
         std::max(settings.least_measure_time, settings.measure_steps * step_time);
}

/// @param has_rates  whether the predictor knows the machine
Ahead ahead_of(Tuner& tuner, const std::vector<Experiment>& batch, bool has_rates) {
  Ahead ahead{tuner.still_to_come(), std::nullopt, static_cast<int>(batch.size())};
  const auto step_time = has_rates ? tuner.foretold(batch.front().name) : std::nullopt;
  if (step_time) ahead.each = experiment_time(batch.front(), *step_time);
  return ahead;
}

/// Measures the candidates for which the tuner asks, until it is finished or the run is stopped.
std::vector<Record> measure(const TuningConfig& config, int group_size, Scheduler& scheduler,
                            Tuner& tuner, MachineWatch& watch, bool& stopped,
                            const std::function<void(const std::vector<Experiment>&)>& tell) {
  std::vector<Record> all;
  std::set<std::string> names;
  while (!stopped) {
    std::vector<Experiment> batch;
    for (Candidate& candidate : tuner.next(std::max(1, scheduler.slots(group_size)))) {
      batch.push_back(make_experiment(config, group_size, std::move(candidate)));
    }
    if (batch.empty()) break;
    tell(batch);
    auto records = scheduler.run(batch);
    stopped = records.size() < batch.size() || !look_after(watch, scheduler, records);
    for (Record& record : records) {
      tuner.learn(record);
      // Two searches of one stage may both ask for a point, which is one record.
      if (names.insert(record.experiment.name).second) all.push_back(std::move(record));
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Record& a, const Record& b) { return a.finished < b.finished; });
  return all;
}

std::vector<ResultAxis> axes_of(const Pool& pool, int group_size) {
  std::vector<Experiment> experiments(pool.candidates.size());
  std::vector<const Experiment*> all;
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    experiments[i].ds_config = pool.candidates[i].candidate.ds_config;
    experiments[i].ranks = group_size;
    all.push_back(&experiments[i]);
  }
  return varying_axes(all);
}

TuningResult search(const TuningConfig& config, int group_size, Scheduler& scheduler,
                    const MemoryPredictor& predictor, const DryRunner& run_dry,
                    const PartFactors& start, const AheadListener& tell) {
  warn_of_fast_mode(config);
  TuningResult result;
  result.stages = plan_stages(config, group_size, predictor);
  result.model_info = predict_model_info(config, result.stages);
  std::optional<RunRates> rates;  // the run's rates, measured when a tuner first makes a forecaster
  // A large space takes minutes to walk, in which the workers must not give up this rank; its other
  // threads have no part in MPI.
  const DryRunner dry_run = [&, own = std::this_thread::get_id()](const Experiment& experiment,
                                                                  int rank) {
    if (std::this_thread::get_id() == own) scheduler.stay_in_touch();
    return run_dry(experiment, rank);
  };
  auto parts = default_parts(config, group_size, result.stages, predictor, dry_run);
  parts.make_pool = [&result, group_size, make = parts.make_pool](const auto&... of) {
    Pool pool = make(of...);
    result.full |= pool.full;
    add_axes(result.searched, axes_of(pool, group_size));
    return pool;
  };
  parts.make_forecaster = [&] {
    if (!rates) rates = measured_rates(config, group_size, scheduler);
    // What was learnt is relative to measured rates.
    const bool is_measured = *rates != RunRates(estimated_rates(config.settings));
    const PartFactors& factors = is_measured ? start : kAsRated;
    if (factors != kAsRated)
      log_line("starts from what earlier searches learnt about this machine");
    return std::make_unique<StepTimeForecaster>(StepTimePredictor(
        *rates, [&] { scheduler.stay_in_touch(); }, factors));
  };
  const auto tuner = make_tuner(parts);
  MachineWatch watch(config.time_budget);
  const bool has_rates = rates && *rates != RunRates(estimated_rates(config.settings));
  auto records = measure(config, group_size, scheduler, *tuner, watch, result.stopped,
                         [&](const std::vector<Experiment>& batch) {
                           if (tell) tell(ahead_of(*tuner, batch, has_rates));
                         });
  result.best = tuner->best();
  if (rates) result.host_rates = rates->host();
  result.remarks = tuner->remarks();
  result.predictions = tuner->predictions();
  const std::string mattering = settings_that_matter(result.predictions);
  if (!mattering.empty()) result.remarks.push_back(mattering);
  if (result.best && !result.stopped) {
    auto remark = check_whole_step(config, *result.best, records, scheduler);
    if (remark) result.remarks.push_back(*std::move(remark));
  }
  for (auto& remark : watch.remarks()) result.remarks.push_back(std::move(remark));
  result.nothing_fits = !result.best && !result.stopped && is_memory_alone(result.stages, records);
  result.full = full_of(config, result.stages, result.full, records);
  result.records.insert(result.records.end(), std::make_move_iterator(records.begin()),
                        std::make_move_iterator(records.end()));
  return result;
}

}  // namespace

TuningResult tune(const TuningConfig& config, int group_size, Scheduler& scheduler,
                  const MemoryPredictor& predictor, const DryRunner& dry_run,
                  const PartFactors& start, const AheadListener& tell) {
  auto result = search(config, group_size, scheduler, predictor, dry_run, start, tell);
  result.shortage = scheduler.shortage();
  result.lost_devices = scheduler.lost_devices();
  result.slow_workers = scheduler.slow_workers();
  result.wrong_sums = scheduler.wrong_sums();
  if (result.wrong_sums) result.stopped = true;
  if (result.shortage) {
    result.stopped = true;
    result.largest_group = largest_group(config, result.shortage->left, predictor);
  }
  return result;
}

}  // namespace dstune
