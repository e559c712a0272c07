#include "core/search/plan/batch_points.hpp"

#include <algorithm>

namespace dstune {

std::vector<std::int64_t> spread_micro_batches(std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> all;
  if (least > most) return all;
  all = {least, most};
  for (std::int64_t power = 1; power < most; power *= 2) {
    for (const std::int64_t micro_batch : {power, power + power / 2}) {
      if (micro_batch > least && micro_batch < most) all.push_back(micro_batch);
    }
  }
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  return all;
}

std::vector<Point> exact_points(std::int64_t total, int group_size, int stage, std::int64_t least,
                                std::int64_t most) {
  std::vector<Point> points;
  if (total % group_size != 0) return points;
  const std::int64_t samples = total / group_size;
  for (std::int64_t micro_batch = least; micro_batch <= std::min(most, samples); ++micro_batch) {
    if (samples % micro_batch == 0) points.push_back({stage, micro_batch, samples / micro_batch});
  }
  return points;
}

std::vector<Point> batch_points(const TuningConfig& config, int group_size, const StagePlan& plan) {
  std::vector<Point> points;
  if (!plan.feasible) return points;
  const auto least = config.autotuning.min_train_micro_batch_size_per_gpu;
  const auto& list = config.micro_batches;
  if (config.objective.train_batch_size) {
    points = exact_points(*config.objective.train_batch_size, group_size, plan.stage, least,
                          plan.max_micro_batch);
    std::erase_if(points, [&](const Point& point) {
      return !list.empty() && !std::ranges::binary_search(list, point.micro_batch);
    });
    return points;
  }
  const auto sizes = list.empty() ? spread_micro_batches(least, plan.max_micro_batch) : list;
  for (const std::int64_t micro_batch : sizes) {
    if (micro_batch > plan.max_micro_batch) continue;
    points.push_back(search_point(config, group_size, plan.stage, micro_batch));
  }
  return points;
}

}  // namespace dstune
