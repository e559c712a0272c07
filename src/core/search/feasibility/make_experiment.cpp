#include "core/search/feasibility/make_experiment.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/search/feasibility/batch_keys.hpp"

namespace dstune {
namespace {

constexpr std::string_view kZero = "zero_optimization";

json::object with_stage(const json::value* user, int stage) {
  json::object zero;
  zero["stage"] = stage;
  if (user == nullptr || !user->is_object()) return zero;
  for (const auto& member : user->get_object()) {
    if (member.key() != "stage") zero.insert(member);
  }
  return zero;
}

}  // namespace

std::string name_of(const Point& point) {
  return concat('z', point.stage, "_gas", point.accumulation_steps, "_tmbspg", point.micro_batch);
}

Candidate make_candidate(const TuningConfig& config, int group_size, const Point& point) {
  json::object ds;
  ds[kTrainBatch] = point.micro_batch * point.accumulation_steps * group_size;
  ds[kMicroBatch] = point.micro_batch;
  ds[kAccumulation] = point.accumulation_steps;
  for (const auto& member : config.deepspeed.json()) {
    if (member.key() == kZero) {
      ds[kZero] = with_stage(&member.value(), point.stage);
    } else if (!ds.contains(member.key())) {
      ds.insert(member);
    }
  }
  if (!ds.contains(kZero)) ds[kZero] = with_stage(nullptr, point.stage);
  return {name_of(point), std::move(ds)};
}

std::int64_t amount_of(Metric metric, std::int64_t samples, const RunSettings& settings) {
  return metric == Metric::tokens ? samples * settings.sequence_length : samples;
}

Experiment make_experiment(const TuningConfig& config, int group_size, Candidate candidate) {
  Experiment experiment{std::move(candidate.name), std::move(candidate.ds_config), group_size,
                        config.settings, candidate.repetition};
  experiment.give_up_above = candidate.give_up_above;
  if (const auto length = tuned_sequence_length(experiment.ds_config.json())) {
    experiment.settings.sequence_length = *length;
  }
  return experiment;
}

Experiment make_experiment(const TuningConfig& config, int group_size, int stage,
                           std::int64_t micro_batch, std::int64_t accumulation_steps) {
  return make_experiment(
      config, group_size,
      make_candidate(config, group_size, {stage, micro_batch, accumulation_steps}));
}

std::int64_t max_samples_per_rank(const TuningConfig& config, int group_size) {
  return config.autotuning.max_train_batch_size.value_or(0) / group_size;
}

std::int64_t largest_allowed_micro_batch(const TuningConfig& config, int group_size) {
  const auto limit = config.autotuning.max_train_micro_batch_size_per_gpu;
  if (!config.autotuning.max_train_batch_size) return limit;
  return std::min(limit, max_samples_per_rank(config, group_size));
}

Point search_point(const TuningConfig& config, int group_size, int stage,
                   std::int64_t micro_batch) {
  if (config.objective.train_batch_size) {
    const auto samples = *config.objective.train_batch_size / group_size;
    return {stage, micro_batch, std::max<std::int64_t>(1, samples / micro_batch)};
  }
  auto steps = std::max<std::int64_t>(config.accumulation_steps, 1);
  if (config.autotuning.max_train_batch_size) {
    const auto room =
        max_samples_per_rank(config, group_size) / std::max<std::int64_t>(micro_batch, 1);
    steps = std::clamp<std::int64_t>(room, 1, steps);
  }
  return {stage, micro_batch, steps};
}

}  // namespace dstune
