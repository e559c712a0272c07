#include "core/search/tuner.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/search/finalists.hpp"
#include "core/search/prober.hpp"
#include "core/search/stage_search.hpp"

namespace dstune {
namespace {

void warn_of_full_mode(const AutotuningConfig& autotuning) {
  if (!autotuning.fast) {
    log_warning(
        "autotuning.fast is false, but only fast mode exists (stage and micro-batch); set "
        "it to true");
  } else if (autotuning.tuner_type != "gridsearch") {
    log_warning(concat("autotuning.tuner_type ", autotuning.tuner_type,
                       " has no effect in fast mode; remove it"));
  }
}

/// What the stages came to; `best` is owned by the prober.
struct Exploration {
  const Record* best = nullptr;
  std::vector<Record> stage_bests;
};

Exploration explore(const TuningConfig& config, int group_size,
                    const std::vector<StagePlan>& stages, Prober& prober) {
  const auto metric = config.autotuning.metric;
  // A larger micro-batch is a better start only where more samples at once are better.
  const bool progressive = metric != Metric::latency && config.micro_batches.empty();
  Exploration found;
  std::int64_t best_micro_batch = 0;
  std::int64_t previous_max = 0;
  for (const auto& plan : stages) {
    if (prober.is_over()) break;
    if (!plan.feasible && plan.unsupported.empty()) continue;
    if (progressive && plan.feasible && plan.max_micro_batch < previous_max) {
      log_debug(concat("stage ", plan.stage, " is skipped: at most micro-batch ",
                       plan.max_micro_batch, " fits, but ", previous_max, " ran before"));
      continue;
    }
    const auto result = StageSearch(prober, config, group_size, plan).run(previous_max);
    if (result.best == nullptr) continue;
    found.stage_bests.push_back(*result.best);
    const bool is_better =
        found.best == nullptr || is_clearly_better(metric, std::get<Measured>(result.best->outcome),
                                                   std::get<Measured>(found.best->outcome));
    if (is_better) found.best = result.best;
    const auto micro_batch = result.best->experiment.ds_config.at("train_micro_batch_size_per_gpu")
                                 .to_number<std::int64_t>();
    if (progressive && (is_better || micro_batch > best_micro_batch)) {
      best_micro_batch = micro_batch;
      previous_max = result.max_micro_batch;
    }
  }
  return found;
}

/// Repeats the bests of the stages one after the other, if they were disturbed; the repetitions
/// decide which of them is the best.
void confirm(const std::vector<Record>& stage_bests, Metric metric, Scheduler& scheduler,
             TuningResult& result) {
  std::optional<Measured> best;
  const auto finalists = choose_finalists(stage_bests, result.records);
  for (std::size_t i = 0; i < finalists.size() && !result.stopped; ++i) {
    auto records = scheduler.run({finalists[i]});
    result.stopped = records.empty();
    for (auto& record : records) {
      const auto* measured = std::get_if<Measured>(&record.outcome);
      if (measured != nullptr && (!best || is_clearly_better(metric, *measured, *best))) {
        best = *measured;
        result.best = stage_bests[i];
      }
      result.records.push_back(std::move(record));
    }
  }
}

// A stage that is not modelled says nothing about memory: the others do.
bool is_memory_alone(const std::vector<StagePlan>& stages, const std::vector<Record>& records) {
  const bool has_modelled = std::any_of(
      stages.begin(), stages.end(), [](const StagePlan& plan) { return plan.unsupported.empty(); });
  return has_modelled && std::all_of(records.begin(), records.end(), [](const Record& record) {
           return std::holds_alternative<OutOfMemory>(record.outcome) ||
                  std::holds_alternative<Skipped>(record.outcome);
         });
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
      continue;  // the user's batch sizes leave nothing for so few ranks
    }
  }
  return 0;
}

/// Stands in for a run that fits and is as good as any other.
Record pretend(const Experiment& experiment) {
  Measured measured;
  measured.steps = 1;
  measured.step_time = {1, 1, 1, 0};
  measured.samples_per_s = 1;
  measured.flops_per_s_per_rank = 1;
  measured.peak_memory.total = std::numeric_limits<Bytes>::max();  // no room for more
  // What the search looks at: a whole configuration in every record would be a second copy of all.
  constexpr const char* kMicroBatch = "train_micro_batch_size_per_gpu";
  Experiment named;
  named.name = experiment.name;
  named.ds_config[kMicroBatch] = experiment.ds_config.at(kMicroBatch);
  return {named, measured, {}, 0, 0};
}

}  // namespace

ModelInfo predict_model_info(const TuningConfig& config, const std::vector<StagePlan>& stages) {
  ModelInfo info;
  info.num_params = make_model_parameters(config.settings.model).total();
  info.trainable_num_params = info.num_params;
  for (const auto& plan : stages) {
    info.activation_bytes_per_micro_batch =
        std::max(info.activation_bytes_per_micro_batch, plan.activation_bytes_per_micro_batch);
  }
  return info;
}

std::vector<Experiment> plan_experiments(const TuningConfig& config, int group_size,
                                         const std::vector<StagePlan>& stages) {
  std::vector<Experiment> experiments;
  const auto run = [&](const std::vector<Experiment>& batch) {
    std::vector<Record> records;
    for (const auto& experiment : batch) {
      experiments.push_back(experiment);
      records.push_back(pretend(experiment));
    }
    return records;
  };
  auto supported = stages;
  std::erase_if(supported, [](const StagePlan& plan) { return !plan.unsupported.empty(); });
  Prober prober(config, group_size, run, [] { return 1; });
  explore(config, group_size, supported, prober);
  return experiments;
}

namespace {

TuningResult search(const TuningConfig& config, int group_size, Scheduler& scheduler,
                    const MemoryPredictor& predictor) {
  warn_of_full_mode(config.autotuning);
  TuningResult result;
  result.stages = plan_stages(config, group_size, predictor);
  result.model_info = predict_model_info(config, result.stages);
  Prober prober(
      config, group_size,
      [&](const std::vector<Experiment>& batch) { return scheduler.run(batch); },
      [&] { return scheduler.slots(group_size); });
  const auto found = explore(config, group_size, result.stages, prober);
  if (found.best != nullptr) result.best = *found.best;
  auto records = prober.records();
  result.stopped = prober.is_stopped();
  result.nothing_fits =
      found.best == nullptr && !result.stopped && is_memory_alone(result.stages, records);
  result.records = std::move(records);
  confirm(found.stage_bests, config.autotuning.metric, scheduler, result);
  return result;
}

}  // namespace

TuningResult tune(const TuningConfig& config, int group_size, Scheduler& scheduler,
                  const MemoryPredictor& predictor) {
  auto result = search(config, group_size, scheduler, predictor);
  result.shortage = scheduler.shortage();
  if (result.shortage) {
    result.stopped = true;
    result.largest_group = largest_group(config, result.shortage->left, predictor);
  }
  return result;
}

}  // namespace dstune
