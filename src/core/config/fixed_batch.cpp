#include "core/config/fixed_batch.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/text.hpp"
#include "core/experiment/knob.hpp"

namespace dstune {
namespace {

constexpr const char* kAccumulationPointer = "/gradient_accumulation_steps";

/// The product of two numbers above 0; the largest number where it is larger than that.
std::int64_t saturated_product(std::int64_t one, std::int64_t other) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return one > kMost / other ? kMost : one * other;
}

bool has_accumulation(const std::vector<AxisGroup>& groups) {
  return std::ranges::any_of(groups, [](const AxisGroup& group) {
    return std::ranges::count(group.tied, kAccumulationPointer, &Axis::pointer) > 0;
  });
}

/// A list of accumulation steps gives none: what of it makes the batch is among the splits.
std::optional<std::int64_t> given_accumulation(const TuningConfig& config) {
  const SpaceConfig& space = config.space;
  const bool is_listed = has_accumulation(space.all_stages) ||
                         std::ranges::any_of(space.of_stage, [](const auto& own) {
                           return has_accumulation(own.second);
                         });
  if (!config.accumulation_is_given || is_listed) return std::nullopt;
  return config.accumulation_steps;
}

std::optional<std::int64_t> given_micro_batch(const TuningConfig& config) {
  if (!config.micro_batch_is_given) return std::nullopt;
  return config.start_micro_batch;
}

bool is_micro_batch_open(const TuningConfig& config) {
  return config.micro_batches.empty() && !config.micro_batch_is_given;
}

// The limits are those of a search, and what a list says is not searched.
bool is_allowed(const TuningConfig& config, const BatchSplit& split) {
  const AutotuningConfig& limits = config.autotuning;
  const auto& list = config.micro_batches;
  if (!list.empty()) return std::ranges::binary_search(list, split.micro_batch);
  if (split.micro_batch < limits.min_train_micro_batch_size_per_gpu) return false;
  if (split.micro_batch > limits.max_train_micro_batch_size_per_gpu) return false;
  const auto accumulation = given_accumulation(config);
  return !accumulation || !is_micro_batch_open(config) || split.accumulation_steps == *accumulation;
}

std::vector<BatchSplit> splits_of(const TuningConfig& config, std::int64_t total, int ranks) {
  std::vector<BatchSplit> splits;
  if (total % ranks != 0) return splits;
  const std::int64_t samples = total / ranks;
  for (std::int64_t divisor = 1; divisor * divisor <= samples; ++divisor) {
    if (samples % divisor != 0) continue;
    splits.push_back({divisor, samples / divisor});
    if (divisor * divisor != samples) splits.push_back({samples / divisor, divisor});
  }
  std::erase_if(splits, [&](const BatchSplit& split) { return !is_allowed(config, split); });
  std::ranges::sort(splits, {}, &BatchSplit::micro_batch);
  return splits;
}

/// The known numbers of which the batch must be a multiple, and whether they leave nothing open.
struct Factors {
  std::vector<std::string> names = {};
  std::int64_t product = 1;  ///< saturated
  bool are_all = false;
};

Factors factors_of(const TuningConfig& config, std::optional<int> ranks) {
  Factors factors;
  const auto micro_batch = given_micro_batch(config);
  // With a list of micro-batches accumulation follows from each of them.
  const auto accumulation =
      config.micro_batches.empty() ? given_accumulation(config) : std::nullopt;
  const auto take = [&](std::string name, std::int64_t factor) {
    factors.names.push_back(std::move(name));
    factors.product = saturated_product(factors.product, factor);
  };
  if (micro_batch) take(concat("micro-batch ", *micro_batch), *micro_batch);
  if (accumulation) take(concat("accumulation steps ", *accumulation), *accumulation);
  if (ranks) take(concat(*ranks, *ranks == 1 ? " rank" : " ranks"), *ranks);
  factors.are_all = micro_batch && accumulation && ranks;
  return factors;
}

std::string nearest_text(const TuningConfig& config, std::int64_t product,
                         std::optional<int> ranks) {
  const std::int64_t total = *config.objective.train_batch_size;
  const AutotuningConfig& limits = config.autotuning;
  std::set<std::int64_t> units = {product};
  const auto add = [&](std::int64_t micro_batch) {
    units.insert(saturated_product(product, micro_batch));
  };
  for (const std::int64_t micro_batch : config.micro_batches) add(micro_batch);
  add(limits.min_train_micro_batch_size_per_gpu);
  std::set<std::int64_t> can_be;
  if (is_micro_batch_open(config)) {
    can_be = {saturated_product(product, limits.max_train_micro_batch_size_per_gpu)};
  }
  for (const std::int64_t unit : units) {
    can_be.insert(total / unit * unit);
    can_be.insert(saturated_product(total / unit + 1, unit));
  }
  std::erase_if(can_be, [&](std::int64_t size) {
    return size < 1 || size > kLargestBatch || size == total ||
           (ranks && splits_of(config, size, *ranks).empty());
  });
  const auto above = can_be.lower_bound(total);
  std::vector<std::string> nearest;
  if (above != can_be.begin()) nearest.push_back(concat(*std::prev(above)));
  if (above != can_be.end()) nearest.push_back(concat(*above));
  if (nearest.empty()) return "";
  return concat(
      nearest.size() == 1 ? "; the nearest that works is " : "; the nearest that work are ",
      join(nearest, " and "));
}

std::string micro_batches_text(const TuningConfig& config) {
  const AutotuningConfig& limits = config.autotuning;
  if (config.micro_batches.empty()) {
    return concat("within autotuning's ", limits.min_train_micro_batch_size_per_gpu, " to ",
                  limits.max_train_micro_batch_size_per_gpu);
  }
  std::vector<std::string> sizes;
  for (const std::int64_t size : config.micro_batches) sizes.push_back(concat(size));
  return concat("of the list ", join(sizes, ", "));
}

}  // namespace

std::vector<BatchSplit> fixed_batch_splits(const TuningConfig& config, int ranks) {
  if (!config.objective.train_batch_size) return {};
  return splits_of(config, *config.objective.train_batch_size, ranks);
}

std::string fixed_batch_fault(const TuningConfig& config, std::optional<int> ranks) {
  if (!config.objective.train_batch_size) return "";
  const std::int64_t total = *config.objective.train_batch_size;
  const Factors factors = factors_of(config, ranks);
  const std::string product = join(factors.names, " x ");
  if (factors.are_all && factors.product > kLargestBatch) {
    return concat("is ", total, ", but ", product, " are more than ", kLargestBatch,
                  "; what works is \"auto\" for the micro-batch or the accumulation steps");
  }
  if (factors.are_all && factors.product != total) {
    return concat("is ", total, ", but ", product, " are ", factors.product, "; what works is ",
                  factors.product, ", or \"auto\" for the micro-batch or the accumulation steps");
  }
  if (total % factors.product != 0) {
    return concat("is ", total, ", which is not a multiple of ", product,
                  nearest_text(config, factors.product, ranks));
  }
  if (!ranks || !splits_of(config, total, *ranks).empty()) return "";
  return concat("is ", total, ", which no micro-batch ", micro_batches_text(config),
                " can produce on ", product, nearest_text(config, factors.product, ranks));
}

}  // namespace dstune
