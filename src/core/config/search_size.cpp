#include "core/config/search_size.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr Bytes kMostCopies = Bytes{64} << 20U;

/// Beside the candidates of a stage: the smallest, the largest, and what bisection tries.
constexpr std::int64_t kOtherProbes = 64;

/// About what a value takes in memory with all that is in it.
Bytes weight(const json::value& value) {
  Bytes sum = sizeof(json::value);
  if (value.is_string()) {
    sum += value.get_string().size();
  } else if (value.is_array()) {
    for (const auto& element : value.get_array()) sum += weight(element);
  } else if (value.is_object()) {
    for (const auto& member : value.get_object()) {
      sum += sizeof(json::key_value_pair) + member.key().size() + weight(member.value());
    }
  }
  return sum;
}

}  // namespace

std::int64_t most_experiments(const TuningConfig& config) {
  const auto of_a_stage = config.micro_batches.empty()
                              ? config.autotuning.num_tuning_micro_batch_sizes + kOtherProbes
                              : static_cast<std::int64_t>(config.micro_batches.size());
  const auto stages = static_cast<std::int64_t>(config.stages.size());
  return std::min<std::int64_t>(config.autotuning.tuner_num_trials, stages * of_a_stage);
}

void check_search_size(const TuningConfig& config, Problems& problems) {
  const auto experiments = static_cast<Bytes>(std::max<std::int64_t>(most_experiments(config), 1));
  const Bytes each = weight(config.deepspeed.json());
  if (each <= kMostCopies / experiments) return;
  problems.add("file", concat("takes ", format_bytes(each), " in each of up to ", experiments,
                              " experiments; accepted: at most ", format_bytes(kMostCopies),
                              " in all (shorten it, or lower /autotuning/tuner_num_trials)"));
}

}  // namespace dstune
