#include "tests/oracle/gradient_arrival.hpp"

#include <algorithm>
#include <utility>

namespace dstune::oracle {

std::vector<Arrival> backward_arrivals(const ModelParameters& parameters) {
  const auto numel = [&](std::size_t tensor) { return parameters.tensors[tensor].numel(); };
  const std::size_t wte = 0;
  const std::size_t wpe = 1;
  const std::int64_t tied = numel(wte);
  std::vector<Arrival> arrivals;
  for (std::size_t module = parameters.modules.size(); module-- > 0;) {
    const auto& tensors = parameters.modules[module].parameters;
    if (tensors.size() < 2) continue;  // containers, activations, embeddings and the head
    const std::size_t weight = tensors[0];
    const std::size_t bias = tensors[1];
    if (parameters.tensors[weight].shape.size() == 2) {
      // AddmmBackward0 computes both, and the hooks follow.
      arrivals.push_back({bias, numel(bias), tied + numel(weight)});
      arrivals.push_back({weight, numel(weight), tied});
    } else {  // LayerNorm computes both at once
      arrivals.push_back({weight, numel(weight), tied + numel(bias)});
      arrivals.push_back({bias, numel(bias), tied});
    }
  }
  arrivals.push_back({wpe, numel(wpe), tied});
  arrivals.push_back({wte, tied, 0, 2 * tied});
  return arrivals;
}

std::vector<std::vector<std::size_t>> pack_buckets(const std::vector<std::size_t>& order,
                                                   const ModelParameters& parameters,
                                                   std::int64_t capacity) {
  std::vector<std::vector<std::size_t>> buckets;
  std::int64_t fill = 0;
  for (const std::size_t tensor : order) {
    const std::int64_t numel = parameters.tensors[tensor].numel();
    if (buckets.empty() || fill + numel > capacity) {
      buckets.emplace_back();
      fill = 0;
    }
    buckets.back().push_back(tensor);
    fill += numel;
  }
  return buckets;
}

std::int64_t accumulation_peak(const std::vector<Arrival>& arrivals, bool held) {
  std::int64_t sums = 0;
  if (held) {
    for (const Arrival& arrival : arrivals) sums += arrival.numel;
  }
  std::int64_t peak = 0;
  for (const Arrival& arrival : arrivals) {
    peak = std::max(peak, sums + arrival.numel + std::max(arrival.others, arrival.parts));
    if (!held) sums += arrival.numel;
  }
  return peak;
}

ReductionWalk::ReductionWalk(Rules rules, std::int64_t held)
    : rules_(std::move(rules)), held_(held) {
  touch(0);
}

void ReductionWalk::touch(std::int64_t more) { peak_ = std::max(peak_, held_ + more); }

void ReductionWalk::arrive(const Arrival& arrival) {
  const std::int64_t others = arrival.others * rules_.each;
  touch((arrival.numel + arrival.parts) * rules_.each);
  touch(arrival.numel * (rules_.each + rules_.sum) + others);
  if (!rules_.accumulated) held_ += arrival.numel * (rules_.sum > 0 ? rules_.sum : rules_.each);
  reduce(arrival.tensor, arrival.numel, arrival.others);
}

void ReductionWalk::reduce(std::size_t tensor, std::int64_t numel, std::int64_t others) {
  if (rules_.sum > 0 && !rules_.sums_in_bucket) {
    held_ += numel * rules_.each;
    touch(others * rules_.each);
  }
  if (fill_ + numel > rules_.capacity) flush(others);
  bucket_.push_back({tensor, numel});
  fill_ += numel;
  const bool is_copied = !rules_.list && fill_ <= rules_.capacity;
  if (is_copied) held_ -= numel * each_in_bucket();
}

void ReductionWalk::begin_sums(std::int64_t others) {
  if (rules_.group_sums.empty()) return;
  for (const auto& [tensor, numel] : bucket_) {
    if (rules_.owns(tensor)) held_ += std::exchange(rules_.group_sums[rules_.group_of(tensor)], 0);
  }
  touch(others * rules_.each);
}

void ReductionWalk::flush(std::int64_t others) {
  if (bucket_.empty()) return;
  const bool has_sums = !rules_.group_sums.empty();
  if (rules_.list) {
    held_ -= waiting_ * rules_.each;
    waiting_ = 0;
    begin_sums(others);
    if (!rules_.sums_in_bucket) drop_list();
  } else {
    begin_sums(others);
    const bool owned = std::any_of(bucket_.begin(), bucket_.end(),
                                   [&](const auto& entry) { return rules_.owns(entry.first); });
    if (owned && !has_partition_) {
      has_partition_ = true;
      held_ += rules_.partition * rules_.each;
      touch(others * rules_.each);
    }
    const bool extra_large = fill_ > rules_.capacity;
    const bool stays = owned ? has_sums && !rules_.sums_in_bucket : rules_.keeps_unowned;
    if (extra_large && !stays) held_ -= fill_ * each_in_bucket();
  }
  bucket_.clear();
  fill_ = 0;
}

void ReductionWalk::drop_list() {
  for (const auto& [tensor, numel] : bucket_) {
    if (!rules_.owns(tensor)) waiting_ += numel;
  }
  if (rules_.waits) return;
  held_ -= waiting_ * rules_.each;
  waiting_ = 0;
}

std::int64_t ReductionWalk::finish() {
  flush(0);
  for (const std::int64_t sums : rules_.group_sums) held_ += sums;
  touch(0);
  return peak_;
}

}  // namespace dstune::oracle
