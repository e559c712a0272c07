#include "core/search/feasibility/micro_batches.hpp"

#include <algorithm>
#include <set>

#include "core/config/fixed_batch.hpp"

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

std::vector<std::int64_t> smaller_micro_batches(std::int64_t lowest, std::int64_t largest) {
  constexpr std::int64_t kSteps = 3;
  const auto stride = std::max<std::int64_t>(1, (largest - lowest) / kSteps);
  std::vector<std::int64_t> sizes;
  for (auto size = largest - stride; size >= lowest; size -= stride) sizes.push_back(size);
  return sizes;
}

std::int64_t samples_per_rank(const TuningConfig& config, int group_size, std::int64_t largest) {
  if (config.autotuning.max_train_batch_size) return max_samples_per_rank(config, group_size);
  return largest * std::max<std::int64_t>(config.accumulation_steps, 1);
}

Point filled_point(int stage, std::int64_t micro_batch, std::int64_t samples) {
  return {stage, micro_batch, std::max<std::int64_t>(1, samples / micro_batch)};
}

std::vector<Point> fixed_batch_points(const TuningConfig& config, int group_size, int stage) {
  std::vector<Point> points;
  for (const BatchSplit& split : fixed_batch_splits(config, group_size)) {
    points.push_back({stage, split.micro_batch, split.accumulation_steps});
  }
  return points;
}

namespace {

/// The largest micro-batches that fit, ascending: with the file's settings and with the leanest of
/// the stage's space. If none fits, the least that the user allows.
std::vector<std::int64_t> tops_of(const TuningConfig& config, const StagePlan& plan) {
  std::set<std::int64_t> tops = {plan.max_micro_batch, plan.max_micro_batch_of_leanest};
  tops.erase(0);
  if (tops.empty()) tops.insert(config.autotuning.min_train_micro_batch_size_per_gpu);
  return {tops.begin(), tops.end()};
}

bool has_space(const SpaceConfig& space, int stage) {
  return space.with_default || space.with_deepspeeds || !space.axes_of(stage).empty();
}

std::vector<std::int64_t> searched_sizes(const TuningConfig& config, const StagePlan& plan,
                                         std::int64_t samples) {
  const auto& autotuning = config.autotuning;
  const auto least = autotuning.min_train_micro_batch_size_per_gpu;
  const auto tops = tops_of(config, plan);
  // A space is multiplied by every size, so that only the listed micro-batches are used there.
  const bool is_plain = !has_space(config.space, plan.stage);
  std::set<std::int64_t> sizes;
  for (const std::int64_t top : tops) {
    const auto list =
        list_micro_batches(least, top, samples, autotuning.num_tuning_micro_batch_sizes);
    sizes.insert(list.begin(), list.end());
    if (!is_plain) continue;
    const auto smaller =
        smaller_micro_batches(list.size() > 1 ? list[list.size() - 2] + 1 : least, list.back());
    sizes.insert(smaller.begin(), smaller.end());
  }
  const auto users = config.start_micro_batch;
  if (users > least && users <= tops.back()) sizes.insert(users);
  if (is_plain || autotuning.metric == Metric::latency) {
    for (auto size = least; size < tops.back(); size *= 2) sizes.insert(size);
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace

std::vector<Point> pool_points(const TuningConfig& config, int group_size, const StagePlan& plan) {
  if (config.objective.train_batch_size) return fixed_batch_points(config, group_size, plan.stage);
  const auto& users = config.micro_batches;
  const auto largest = users.empty() ? tops_of(config, plan).back() : users.back();
  auto samples = samples_per_rank(config, group_size, largest);
  if (!users.empty()) {
    samples = std::min(samples, largest * std::max<std::int64_t>(config.accumulation_steps, 1));
  }
  // For latency accumulation is not raised, because that only makes a step longer.
  const bool fills = !users.empty() || config.autotuning.metric != Metric::latency;
  std::vector<Point> points;
  for (const auto size : users.empty() ? searched_sizes(config, plan, samples) : users) {
    if (size > largest_allowed_micro_batch(config, group_size)) continue;
    points.push_back(fills ? filled_point(plan.stage, size, samples)
                           : search_point(config, group_size, plan.stage, size));
  }
  return points;
}

}  // namespace dstune
