#include "core/search/space/leanest.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/search/space/validity.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

constexpr std::size_t kMostValues = 8;  // the most values of a list that are tried

struct Lean {
  DeepSpeedConfig ds_config;
  std::int64_t accumulation_steps = 1;
  Bytes peak = kUnlimited;  ///< kUnlimited: there is no step at all
};

/// Looks for the leanest points of one stage's spaces.
class LeanSearch {
 public:
  LeanSearch(const TuningConfig& config, int group_size, const DryRunner& dry_run)
      : config_(config),
        group_size_(group_size),
        dry_run_(dry_run),
        parameters_(make_model_parameters(config.settings.model)),
        validity_(config, parameters_, group_size) {
    config_.settings.memory_limit = kUnlimited;
  }

  Lean leanest(const Space& space) const {
    Places places(space.axes().size(), 0);
    Lean best = at(space, places);
    const bool has_start = best.peak != kUnlimited;
    improve(space, places, best);
    // If the first point had no step, the lists before the one that led to a step could not be
    // compared; they are now.
    if (!has_start) improve(space, places, best);
    return best;
  }

 private:
  using Places = std::vector<std::size_t>;

  // Goes through all lists once, and keeps of each the value with which the peak is least.
  void improve(const Space& space, Places& places, Lean& best) const {
    for (std::size_t axis = 0; axis < places.size(); ++axis) {
      const std::size_t size = space.axes()[axis].size();
      const std::size_t count = std::min(size, kMostValues);
      std::size_t kept = places[axis];
      for (std::size_t i = 0; i < count && count > 1; ++i) {
        places[axis] = i * (size - 1) / (count - 1);
        if (places[axis] == kept) continue;
        Lean other = at(space, places);
        if (other.peak >= best.peak) continue;
        best = std::move(other);
        kept = places[axis];
      }
      places[axis] = kept;
    }
  }

  // The only point of the space, beside its axes, is the least micro-batch.
  Lean at(const Space& space, const Places& places) const {
    std::uint64_t index = 0;
    for (std::size_t axis = 0; axis < places.size(); ++axis) {
      index = index * space.axes()[axis].size() + places[axis];
    }
    if (space.first_alike(index) != index) return {};
    Lean lean{space.config(index), space.point(index).accumulation_steps};
    if (validity_.fault(lean.ds_config)) return {};
    const Experiment experiment = make_experiment(config_, group_size_, {"", lean.ds_config});
    const DryRun run = dry_run_(experiment, 0);
    const auto* const measured = std::get_if<Measured>(&run.outcome);
    if (measured != nullptr) lean.peak = measured->peak_memory.counted();
    return lean;
  }

  TuningConfig config_;
  int group_size_;
  const DryRunner& dry_run_;
  ModelParameters parameters_;
  Validity validity_;
};

}  // namespace

std::int64_t max_micro_batch_of_leanest(const TuningConfig& config, int group_size, int stage,
                                        const DryRunner& dry_run) {
  const LeanSearch search(config, group_size, dry_run);
  const auto least = config.autotuning.min_train_micro_batch_size_per_gpu;
  const Point point = search_point(config, group_size, stage, least);
  Lean best;
  for (const Space& space : make_spaces(config, group_size, stage, {point})) {
    Lean lean = search.leanest(space);
    if (lean.peak < best.peak) best = std::move(lean);
  }
  if (best.peak == kUnlimited) return 0;
  TuningConfig leanest = config;
  leanest.deepspeed = best.ds_config;
  leanest.accumulation_steps = best.accumulation_steps;
  leanest.accumulation_is_given = false;
  leanest.stages = {stage};
  return plan_stages(leanest, group_size,
                     [&](const Experiment& experiment, int rank) {
                       return dry_run(experiment, rank).outcome;
                     })
      .front()
      .max_micro_batch;
}

StagePlan with_leanest(const TuningConfig& config, int group_size, StagePlan plan,
                       const DryRunner& dry_run) {
  const bool is_chosen = !config.micro_batches.empty() || config.objective.train_batch_size;
  const auto most = largest_allowed_micro_batch(config, group_size);
  if (is_chosen || plan.max_micro_batch >= most) return plan;
  plan.max_micro_batch_of_leanest =
      max_micro_batch_of_leanest(config, group_size, plan.stage, dry_run);
  return plan;
}

}  // namespace dstune
