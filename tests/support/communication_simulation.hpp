// What one optimizer step communicates by zero-step.md 3, element by element and without the
// engines' code: what they are held to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/train/collectives.hpp"
#include "core/train/step_config.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::test {

inline CollectiveCount& count_of(CollectiveCounts& counts, CollectiveKind kind) {
  return counts[static_cast<std::size_t>(kind)];
}

inline void add(CollectiveCounts& counts, CollectiveKind kind, std::int64_t elements, Bytes each) {
  CollectiveCount& count = count_of(counts, kind);
  ++count.calls;
  count.elements += static_cast<std::uint64_t>(elements);
  count.bytes += static_cast<Bytes>(elements) * each;
}

/// The places of a layer's tensors in the order of backward: mlp.c_proj, mlp.c_fc, ln_2,
/// attn.c_proj, attn.c_attn, ln_1; biases of linear layers before their weights.
inline constexpr std::size_t kLayerBackward[] = {11, 10, 9, 8, 6, 7, 5, 4, 3, 2, 0, 1};

class CommunicationSimulation {
 public:
  explicit CommunicationSimulation(const TinyExperiment& tiny)
      : config_(make_step_config(tiny.make().ds_config)),
        layers_(static_cast<std::size_t>(tiny.model.num_layers)),
        ranks_(tiny.ranks) {
    for (const auto& tensor : make_model_parameters(tiny.model).tensors) {
      numels_.push_back(tensor.numel());
      decays_.push_back(tensor.weight_decay);
    }
  }

  CollectiveCounts counts() {
    if (config_.stage == 0) count_stage_0();
    const bool is_bf16_optimizer = config_.stage == 1 && config_.dtype == DType::bf16 &&
                                   config_.grad_accum_dtype == DType::fp32;
    if (is_bf16_optimizer) count_bf16_optimizer();
    if (!is_bf16_optimizer && (config_.stage == 1 || config_.stage == 2)) count_stages_1_and_2();
    if (config_.stage == 3) count_stage_3();
    return counts_;
  }

 private:
  using Order = std::vector<std::size_t>;

  std::int64_t padded(std::size_t tensor) const {
    return (numels_[tensor] + ranks_ - 1) / ranks_ * ranks_;
  }

  void call(CollectiveKind kind, std::int64_t elements) {
    add(counts_, kind, elements, size_of(config_.dtype));
  }

  void send(CollectiveKind kind, std::int64_t elements) {
    add(counts_, kind, elements, size_of(config_.communication_dtype.value_or(config_.dtype)));
  }

  Order backward_order() const {
    Order order = {2 + 12 * layers_, 3 + 12 * layers_};
    for (std::size_t layer = layers_; layer-- > 0;) {
      for (const std::size_t place : kLayerBackward) order.push_back(2 + 12 * layer + place);
    }
    order.insert(order.end(), {1, 0});
    return order;
  }

  std::vector<Order> groups() const {
    std::vector<Order> groups(config_.optimizer.client ? 2 : 1);
    for (std::size_t i = 0; i < numels_.size(); ++i) {
      groups[config_.optimizer.client && !decays_[i] ? 1 : 0].push_back(i);
    }
    return groups;
  }

  std::vector<Order> buckets(const Order& order) const {
    std::vector<Order> flushed;
    Order bucket;
    std::int64_t fill = 0;
    for (const std::size_t tensor : order) {
      if (!bucket.empty() && fill + numels_[tensor] > config_.reduce_bucket_size) {
        flushed.push_back(bucket);
        bucket.clear();
        fill = 0;
      }
      bucket.push_back(tensor);
      fill += numels_[tensor];
    }
    flushed.push_back(bucket);
    return flushed;
  }

  void count_stage_0() {
    send(CollectiveKind::all_reduce, std::accumulate(numels_.begin(), numels_.end(), 0L));
    if (config_.dtype == DType::fp32 && config_.gradient_clipping > 0) {
      add(counts_, CollectiveKind::all_reduce, 1, 4);
    }
  }

  // The groups together are far below 5e8 elements: one call.
  void count_bf16_optimizer() {
    lay_out();
    send(CollectiveKind::all_reduce, std::accumulate(lengths_.begin(), lengths_.end(), 0L));
    for (const std::int64_t length : lengths_) {
      if (ranks_ > 1) call(CollectiveKind::all_gather, length);
    }
  }

  void count_stages_1_and_2() {
    lay_out();
    const bool late = config_.stage == 1 && !config_.overlap_comm;
    Order order = late ? Order{} : backward_order();
    if (late) {
      for (const Order& group : groups()) order.insert(order.end(), group.begin(), group.end());
    }
    const std::int64_t windows = config_.stage == 1 ? 1 : config_.accumulation_steps;
    for (std::int64_t window = 0; window < windows; ++window) {
      for (const Order& bucket : buckets(order)) average(bucket);
    }
    const bool checks = config_.dtype == DType::fp16 ||
                        (config_.dtype == DType::bf16 && config_.check_grad_overflow);
    if (checks) add(counts_, CollectiveKind::all_reduce, 1, 1);
    for (const std::int64_t length : lengths_) {
      add(counts_, CollectiveKind::all_reduce, 1, 4);
      if (ranks_ > 1) call(CollectiveKind::all_gather, length);
    }
  }

  Order dealt(const Order& group) const {
    const auto hands = static_cast<std::size_t>(config_.round_robin_gradients ? ranks_ : 1);
    Order order;
    for (std::size_t hand = 0; hand < hands; ++hand) {
      for (std::size_t i = hand; i < group.size(); i += hands) order.push_back(group[i]);
    }
    return order;
  }

  void lay_out() {
    owners_.resize(numels_.size());
    for (const Order& group : groups()) {
      std::int64_t length = 0;
      for (const std::size_t tensor : group) length += numels_[tensor];
      while (length % (2 * ranks_) != 0) ++length;
      lengths_.push_back(length);
      std::int64_t element = 0;
      for (const std::size_t tensor : dealt(group)) {
        for (std::int64_t i = 0; i < numels_[tensor]; ++i, ++element) {
          owners_[tensor].push_back(element / (length / ranks_));
        }
      }
    }
  }

  void average(const Order& bucket) {
    std::vector<std::int64_t> owners;
    for (const std::size_t tensor : bucket) {
      owners.insert(owners.end(), owners_[tensor].begin(), owners_[tensor].end());
    }
    const bool cuts = config_.contiguous_gradients && config_.reduce_scatter;
    if (cuts && !config_.use_multi_rank_bucket_allreduce) {
      for (std::int64_t owner = 0; owner < ranks_; ++owner) {
        const auto part = std::count(owners.begin(), owners.end(), owner);
        if (part > 0) send(CollectiveKind::reduce, part);
      }
      return;
    }
    std::int64_t fill = 0;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      ++fill;
      const bool is_last = i + 1 == owners.size();
      const bool ends_slice = is_last || owners[i + 1] != owners[i];
      const bool is_full = cuts && ends_slice && fill > config_.reduce_bucket_size;
      if (!is_full && !is_last) continue;
      send(CollectiveKind::all_reduce, fill);
      fill = 0;
    }
  }

  void count_stage_3() {
    for (std::int64_t micro = 0; micro < config_.accumulation_steps; ++micro) {
      if (ranks_ > 1) gather_all_modules_twice();
      for (const Order& bucket : buckets(backward_order())) reduce(bucket);
    }
    if (config_.dtype == DType::fp16) add(counts_, CollectiveKind::all_reduce, 1, 1);
    for (const Order& group : groups()) {
      std::int64_t fill = 0;
      for (const std::size_t tensor : group) {
        if (fill == 0) add(counts_, CollectiveKind::all_reduce, 1, 4);  // a sub-group's norm
        fill += padded(tensor) / ranks_;
        if (fill >= config_.sub_group_size) fill = 0;
      }
    }
  }

  // Forward and backward: the embeddings, the head, which is tied to the first of them, and every
  // pair of weight and bias.
  void gather_all_modules_twice() {
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::size_t alone : {0U, 1U, 0U}) {
        call(CollectiveKind::all_gather, padded(alone));
      }
      for (std::size_t weight = 2; weight < numels_.size(); weight += 2) {
        call(CollectiveKind::all_gather, padded(weight) + padded(weight + 1));
      }
    }
  }

  void reduce(const Order& bucket) {
    std::int64_t fill = 0;
    std::int64_t with_padding = 0;
    for (const std::size_t tensor : bucket) {
      fill += numels_[tensor];
      with_padding += padded(tensor);
    }
    const bool whole = !config_.reduce_scatter && fill <= config_.reduce_bucket_size;
    call(whole ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter,
         whole ? fill : with_padding);
  }

  StepConfig config_;
  std::size_t layers_;
  std::int64_t ranks_;
  std::vector<std::int64_t> numels_;
  std::vector<bool> decays_;
  std::vector<std::int64_t> lengths_;              // padded, by group
  std::vector<std::vector<std::int64_t>> owners_;  // by tensor and element
  CollectiveCounts counts_{};
};

}  // namespace dstune::test
