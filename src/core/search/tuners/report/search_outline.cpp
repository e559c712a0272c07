#include "core/search/tuners/report/search_outline.hpp"

#include <algorithm>

#include "core/search/feasibility/micro_batches.hpp"
#include "core/search/space/leanest.hpp"
#include "core/search/tuners/tune.hpp"
#include "core/search/tuners/tuner_table.hpp"

namespace dstune {
namespace {

SearchOutline outline_of_fast_mode(const TuningConfig& config, int group_size,
                                   const std::vector<StagePlan>& stages) {
  SearchOutline outline;
  for (const StagePlan& plan : stages) {
    if (plan.feasible) outline.stages.push_back(plan.stage);
  }
  outline.configurations = plan_experiments(config, group_size, stages).size();
  outline.experiments = outline.configurations;
  return outline;
}

bool fits(const TuningConfig& config, int group_size, const StagePlan& plan,
          const DryRunner& dry_run) {
  if (plan.feasible || plan.max_micro_batch_of_leanest > 0) return true;
  return !config.space.empty() &&
         max_micro_batch_of_leanest(config, group_size, plan.stage, dry_run) > 0;
}

std::uint64_t count_configurations(const TuningConfig& config, int group_size,
                                   const StagePlan& plan) {
  const auto points = pool_points(config, group_size, plan);
  std::uint64_t count = 0;
  for (const Space& space : make_spaces(config, group_size, plan.stage, points)) {
    count += space.size();
  }
  return count;
}

}  // namespace

SearchOutline outline_search(const TuningConfig& config, int group_size,
                             const std::vector<StagePlan>& stages, const DryRunner& dry_run) {
  if (!has_pool(config)) return outline_of_fast_mode(config, group_size, stages);
  const auto trials = static_cast<std::uint64_t>(config.autotuning.tuner_num_trials);
  SearchOutline outline;
  for (const StagePlan& given : stages) {
    const StagePlan plan =
        config.space.empty() ? given : with_leanest(config, group_size, given, dry_run);
    if (!fits(config, group_size, plan, dry_run)) continue;
    const auto count = count_configurations(config, group_size, plan);
    outline.stages.push_back(plan.stage);
    outline.configurations += count;
    outline.experiments += std::min(count, trials);
  }
  if (!is_full_mode(config)) outline.experiments = std::min(outline.configurations, trials);
  return outline;
}

}  // namespace dstune
