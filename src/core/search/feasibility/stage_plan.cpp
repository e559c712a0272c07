#include "core/search/feasibility/stage_plan.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/config/fixed_batch.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/train/dry_run_memory.hpp"
#include "core/train/run_experiment.hpp"

namespace dstune {
namespace {

using PeakOf = std::function<Bytes(std::int64_t micro_batch)>;

Outcome run_dry(const TuningConfig& config, int group_size, const MemoryPredictor& predictor,
                const Point& point, int rank, Bytes limit = kUnlimited) {
  auto experiment =
      make_experiment(config, group_size, point.stage, point.micro_batch, point.accumulation_steps);
  RunSettings& settings = experiment.settings;
  if (limit == kUnlimited) settings = settings.without_limits();
  settings.memory_limit = limit;
  return predictor(experiment, rank);
}

struct Sample {
  std::int64_t micro_batch = 0;
  Bytes peak = 0;
};

/// The largest micro-batch in [low, high) whose peak is within `limit`; the peak of `low` is within
/// it, that of `high` is not. Peaks grow with the micro-batch and are piecewise linear, so that
/// interpolation mostly hits at once; every third step halves the range and so bounds the number of
/// steps.
std::int64_t largest_within(Bytes limit, Sample low, Sample high, const PeakOf& peak_of) {
  for (int step = 1; high.micro_batch - low.micro_batch > 1; ++step) {
    const auto range = high.micro_batch - low.micro_batch;
    const double part = static_cast<double>(limit - low.peak) /
                        static_cast<double>(std::max<Bytes>(high.peak - low.peak, 1));
    const auto offset =
        step % 3 == 0 ? range / 2 : static_cast<std::int64_t>(part * static_cast<double>(range));
    const auto middle = low.micro_batch + std::clamp<std::int64_t>(offset, 1, range - 1);
    const Sample sample{middle, peak_of(middle)};
    (sample.peak <= limit ? low : high) = sample;
  }
  return low.micro_batch;
}

// A list is bounded by the global batch too, and where even its least value is above that nothing
// would run.
void check_list(const TuningConfig& config, std::int64_t most, int group_size) {
  const auto& list = config.micro_batches;
  if (list.empty() || list.front() <= most) return;
  throw ConfigError(config.source, {{"/train_micro_batch_size_per_gpu",
                                     concat("is ", list.size() == 1 ? "" : "at least ",
                                            list.front(), ", above the ", most,
                                            " that autotuning's limits leave to each of the ",
                                            group_size, " ranks of an experiment")}});
}

void check_limits(const TuningConfig& config, int group_size) {
  std::string fault = fixed_batch_fault(config, group_size);
  if (!fault.empty()) throw ConfigError(config.source, {{"/train_batch_size", std::move(fault)}});
  const auto& limits = config.autotuning;
  const auto least = limits.min_train_micro_batch_size_per_gpu;
  const auto most = largest_allowed_micro_batch(config, group_size);
  if (most >= least) {
    check_list(config, most, group_size);
    return;
  }
  if (limits.max_train_micro_batch_size_per_gpu < least) {
    throw ConfigError(
        config.source,
        {{"/autotuning/max_train_micro_batch_size_per_gpu",
          concat("is ", limits.max_train_micro_batch_size_per_gpu,
                 "; accepted: at least min_train_micro_batch_size_per_gpu, ", least)}});
  }
  throw ConfigError(config.source,
                    {{"/autotuning/max_train_batch_size",
                      concat("is ", limits.max_train_batch_size.value_or(0),
                             "; accepted: at least ", least * group_size, " (micro-batch ", least,
                             " on each of the ", group_size, " ranks of an experiment)")}});
}

/// The largest micro-batch in [fits, high) that fits, where `fits` does. It asks for one after the
/// other: upwards from `fits` in growing steps, then by halving the range.
std::int64_t largest_from(std::int64_t fits, std::int64_t high,
                          const std::function<bool(std::int64_t)>& does_fit) {
  for (std::int64_t step = 1; high - fits > 1;) {
    const auto next = std::min(fits + step, high - 1);
    if (does_fit(next)) {
      fits = next;
      step *= 2;
    } else {
      high = next;
      step = std::max<std::int64_t>(1, (high - fits) / 2);
    }
  }
  return fits;
}

/// Makes dry runs of one stage on one rank, with any micro-batch.
struct DryRuns {
  const TuningConfig& config;
  int group_size;
  const MemoryPredictor& predictor;
  int stage;
  int rank;

  Outcome run(std::int64_t micro_batch, Bytes limit) const {
    const auto point = search_point(config, group_size, stage, micro_batch);
    return run_dry(config, group_size, predictor, point, rank, limit);
  }
  Bytes peak_of(std::int64_t micro_batch) const {
    const auto outcome = run(micro_batch, kUnlimited);
    const auto* measured = std::get_if<Measured>(&outcome);
    return measured != nullptr ? measured->peak_memory.counted() : kUnlimited;
  }
  bool fits(std::int64_t micro_batch) const {
    return std::holds_alternative<Measured>(run(micro_batch, config.settings.memory_limit));
  }
};

/// The largest micro-batch that fits on the rank. A caching allocator takes more than it needs as
/// long as there is room: a micro-batch whose peak without a limit exceeds the limit may still fit
/// within it, so it is tried.
std::int64_t largest_on_rank(const DryRuns& runs, std::int64_t least, std::int64_t largest) {
  const RunSettings& settings = runs.config.settings;
  const Bytes limit = settings.memory_limit;
  const auto peak_of = [&](std::int64_t micro_batch) { return runs.peak_of(micro_batch); };
  const Sample high{largest, peak_of(largest)};
  if (high.peak <= limit) return largest;
  const Sample low{least, largest > least ? peak_of(least) : high.peak};
  const auto found = low.peak > limit ? least - 1 : largest_within(limit, low, high, peak_of);
  if (settings.allocator == AllocatorModel::exact) return found;
  return largest_from(found, largest + 1,
                      [&](std::int64_t micro_batch) { return runs.fits(micro_batch); });
}

std::int64_t largest_that_fits(const TuningConfig& config, int group_size,
                               const MemoryPredictor& predictor, int stage) {
  const auto least = config.autotuning.min_train_micro_batch_size_per_gpu;
  auto largest = largest_allowed_micro_batch(config, group_size);
  if (config.settings.memory_limit == 0) return largest;
  for (const int rank : ranks_to_look_at(group_size)) {
    largest = largest_on_rank({config, group_size, predictor, stage, rank}, least, largest);
    if (largest < least) return 0;
  }
  return largest;
}

/// The largest micro-batch up to `most` that the user's batch allows; 0: none.
std::int64_t rounded_to_batch(const TuningConfig& config, int group_size, std::int64_t most) {
  if (!config.objective.train_batch_size) return most;
  std::int64_t largest = 0;
  for (const BatchSplit& split : fixed_batch_splits(config, group_size)) {
    if (split.micro_batch <= most) largest = split.micro_batch;
  }
  return largest;
}

std::string reason_of(const Outcome& outcome) {
  if (const auto* skipped = std::get_if<Skipped>(&outcome)) return skipped->reason;
  return describe(outcome);
}

/// The bytes that a micro-batch larger by one adds to the activations. Their own peak, which is at
/// the LM head, is linear, since every tensor that lives there has a row per token. (The peak of
/// all memory is not linear: at a small micro-batch it may be the optimizer's.)
Bytes activations_of_one_more(const TuningConfig& config, int group_size,
                              const MemoryPredictor& predictor, Point point,
                              const PeakMemory& peak) {
  ++point.micro_batch;
  const auto outcome = run_dry(config, group_size, predictor, point, 0);
  const auto* larger = std::get_if<Measured>(&outcome);
  if (larger == nullptr) return 0;
  return larger->peak_memory.categories.at(MemoryCategory::activations) -
         peak.categories.at(MemoryCategory::activations);
}

/// The largest need of the host's memory of the ranks that are looked at. It does not depend on the
/// micro-batch.
PeakHostMemory host_memory_of(const TuningConfig& config, int group_size,
                              const MemoryPredictor& predictor, const Point& point,
                              const PeakHostMemory& of_rank_0) {
  PeakHostMemory most = of_rank_0;
  if (most.held == 0) return most;
  for (const int rank : ranks_to_look_at(group_size)) {
    if (rank == 0) continue;
    const auto outcome = run_dry(config, group_size, predictor, point, rank);
    const auto* const own = std::get_if<Measured>(&outcome);
    if (own != nullptr) most.merge(own->peak_host_memory);
  }
  return most;
}

/// The tensor of offloaded parameters is.
bool is_pinned_in_any_case(const TuningConfig& config, int group_size, const Point& point) {
  return make_experiment(config, group_size, point.stage, point.micro_batch,
                         point.accumulation_steps)
      .ds_config.step()
      .offloads_parameters();
}

StagePlan plan_stage(const TuningConfig& config, int group_size, const MemoryPredictor& predictor,
                     int stage) {
  const auto point = search_point(config, group_size, stage, 1);
  const auto outcome = run_dry(config, group_size, predictor, point, 0);
  StagePlan plan;
  plan.stage = stage;
  const auto* measured = std::get_if<Measured>(&outcome);
  if (measured == nullptr) {
    plan.unsupported = reason_of(outcome);
    return plan;
  }
  plan.peak = measured->peak_memory;
  plan.memory_bytes_per_rank =
      plan.peak.allocated - plan.peak.at_peak.at(MemoryCategory::activations);
  plan.activation_bytes_per_micro_batch =
      activations_of_one_more(config, group_size, predictor, point, plan.peak);
  plan.peak_host = host_memory_of(config, group_size, predictor, point, measured->peak_host_memory);
  plan.pins_in_any_case = is_pinned_in_any_case(config, group_size, point);
  plan.shortages = host_shortages(plan.peak_host, config.settings);
  if (!plan.fits_on_host()) return plan;
  plan.max_micro_batch =
      rounded_to_batch(config, group_size, largest_that_fits(config, group_size, predictor, stage));
  plan.feasible = plan.max_micro_batch > 0;
  return plan;
}

}  // namespace

MemoryPredictor make_memory_predictor(const Device* imitated) {
  return
      [imitated, known = std::make_shared<DryRunMemory>()](const Experiment& experiment, int rank) {
        return dry_run(experiment, rank, imitated, known.get()).outcome;
      };
}

Stores full_stores(const StagePlan& plan, Bytes memory_limit) {
  Stores full;
  if (plan.feasible || !plan.unsupported.empty()) return full;
  for (const HostShortage& shortage : plan.shortages) full.set(number_of(shortage.store));
  const bool is_too_large = memory_limit != 0 && plan.peak.counted() > memory_limit;
  // Where micro-batch 1 fits, the least that the user allows does not.
  if (is_too_large || plan.fits_on_host()) full.set(number_of(Store::device));
  return full;
}

std::vector<int> ranks_to_look_at(int group_size) {
  std::vector<int> ranks = {0, 1, group_size / 2, group_size - 1};
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::erase_if(ranks, [&](int rank) { return rank >= group_size; });
  return ranks;
}

std::vector<StagePlan> plan_stages(const TuningConfig& config, int group_size,
                                   const MemoryPredictor& predictor) {
  check_limits(config, group_size);
  std::vector<StagePlan> plans;
  for (const int stage : config.stages) {
    plans.push_back(plan_stage(config, group_size, predictor, stage));
  }
  return plans;
}

}  // namespace dstune
