#include "core/search/plan/micro_batches.hpp"

#include <algorithm>

namespace dstune {

std::vector<std::int64_t> list_micro_batches(std::int64_t min, std::int64_t max,
                                             std::int64_t samples, int count) {
  min = std::max(min, max / 2);
  const auto stride = std::max<std::int64_t>(1, (max - min) / std::max(count, 1));
  std::vector<std::int64_t> list;
  for (auto micro_batch = min; micro_batch < max; micro_batch += stride) {
    if (samples / micro_batch != samples / max) list.push_back(micro_batch);
  }
  list.push_back(max);
  return list;
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

namespace {

std::vector<Point> fixed_batch_points(const TuningConfig& config, int group_size, int stage) {
  auto points = exact_points(*config.objective.train_batch_size, group_size, stage,
                             config.autotuning.min_train_micro_batch_size_per_gpu,
                             largest_allowed_micro_batch(config, group_size));
  const auto& list = config.micro_batches;
  std::erase_if(points, [&](const Point& point) {
    return !list.empty() && !std::binary_search(list.begin(), list.end(), point.micro_batch);
  });
  return points;
}

}  // namespace

std::vector<Point> pool_points(const TuningConfig& config, int group_size, const StagePlan& plan) {
  if (config.objective.train_batch_size) return fixed_batch_points(config, group_size, plan.stage);
  const auto least = config.autotuning.min_train_micro_batch_size_per_gpu;
  const auto steps = std::max<std::int64_t>(config.accumulation_steps, 1);
  const auto& users = config.micro_batches;
  const auto largest = users.empty() ? std::max(plan.max_micro_batch, least) : users.back();
  auto samples = largest * steps;
  if (config.autotuning.max_train_batch_size) samples = max_samples_per_rank(config, group_size);
  if (!users.empty()) samples = std::min(samples, largest * steps);
  const auto sizes = !users.empty()
                         ? users
                         : list_micro_batches(least, largest, samples,
                                              config.autotuning.num_tuning_micro_batch_sizes);
  std::vector<Point> points;
  for (const std::int64_t size : sizes) {
    if (size > largest_allowed_micro_batch(config, group_size)) continue;
    points.push_back({plan.stage, size, std::max<std::int64_t>(1, samples / size)});
  }
  return points;
}

}  // namespace dstune
