// What one optimizer step communicates by zero-step.md 3, element by element and without the
// engines' code: what they are held to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/families/families.hpp"
#include "tests/oracle/hook_trace.hpp"
#include "tests/support/collective_counts.hpp"
#include "tests/support/naive_coordinator.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::test {

/// The places of a layer's tensors in the order of backward: mlp.c_proj, mlp.c_fc, ln_2,
/// attn.c_proj, attn.c_attn, ln_1; biases of linear layers before their weights.
inline constexpr std::size_t kLayerBackward[] = {11, 10, 9, 8, 6, 7, 5, 4, 3, 2, 0, 1};

class CommunicationSimulation {
 public:
  /// @param rank  matters for MiCS: who has only padding of a tensor does not average it
  explicit CommunicationSimulation(const TinyExperiment& tiny, std::int64_t rank = 0)
      : config_(make_step_config(tiny.make())),
        layers_(static_cast<std::size_t>(tiny.model.num_layers)),
        ranks_(tiny.ranks),
        replicas_(1) {
    if (config_.stage == 3 && config_.mics_shard_size > 0) {
      replicas_ = ranks_ / config_.mics_shard_size;
      ranks_ = config_.mics_shard_size;
    }
    place_ = rank % ranks_;
    const ModelParameters parameters = make_model_parameters(tiny.model);
    modules_ = parameters.modules;
    for (const auto& tensor : parameters.tensors) {
      numels_.push_back(tensor.numel());
      decays_.push_back(tensor.weight_decay);
      shapes_.push_back(tensor.shape);
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

  /// Sent by one rank in what counts() counted; without quantised messages.
  double sent_bytes() const { return wire_bytes_; }

 private:
  using Order = std::vector<std::size_t>;

  std::int64_t padded(std::size_t tensor) const {
    return (numels_[tensor] + ranks_ - 1) / ranks_ * ranks_;
  }

  std::int64_t padded(const Order& tensors) const {
    std::int64_t sum = 0;
    for (const std::size_t tensor : tensors) sum += padded(tensor);
    return sum;
  }

  /// @param ranks  of the group; 0: those that share one copy of the model
  void note(CollectiveKind kind, std::int64_t elements, Bytes each, std::int64_t ranks = 0) {
    add(counts_, kind, elements, each);
    wire_bytes_ += wire_bytes(kind, static_cast<Bytes>(elements) * each,
                              static_cast<int>(ranks == 0 ? ranks_ : ranks));
  }

  void call(CollectiveKind kind, std::int64_t elements, std::int64_t ranks = 0) {
    note(kind, elements, size_of(config_.dtype), ranks);
  }

  void send(CollectiveKind kind, std::int64_t elements) {
    note(kind, elements, size_of(config_.communication_dtype.value_or(config_.dtype)));
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
      note(CollectiveKind::all_reduce, 1, 4);
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
    if (checks) note(CollectiveKind::all_reduce, 1, 1);
    for (const std::int64_t length : lengths_) {
      note(CollectiveKind::all_reduce, 1, 4);
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

  // The first step records the order of modules and has no persistent tensors yet: the second is
  // like all others.
  void count_stage_3() {
    NaiveCoordinator coordinator = make_coordinator();
    gather_step(coordinator);
    counts_ = {};
    wire_bytes_ = 0;
    gather_step(coordinator);
    for (std::int64_t micro = 0; micro < config_.accumulation_steps; ++micro) {
      for (const Order& bucket : buckets(backward_order())) {
        reduce(bucket);
        if (micro + 1 == config_.accumulation_steps) average_over_replicas(bucket);
      }
    }
    if (config_.dtype == DType::fp16) note(CollectiveKind::all_reduce, 1, 1);
    for (const Order& group : groups()) {
      std::int64_t fill = 0;
      for (const std::size_t tensor : group) {
        if (fill == 0) note(CollectiveKind::all_reduce, 1, 8);  // a sub-group's norm, float64
        fill += padded(tensor) / ranks_;
        if (fill >= config_.sub_group_size) fill = 0;
      }
    }
  }

  NaiveCoordinator make_coordinator() const {
    ParameterCoordinator::Model model;
    model.numels = numels_;
    for (const std::int64_t numel : numels_) {
      model.persistent.push_back(numel <= config_.param_persistence_threshold);
    }
    for (const auto& module : modules_) model.used_tensors.push_back(module.parameters);
    return {std::move(model),
            {config_.allgather_sequential ? 1 : config_.prefetch_bucket_size,
             config_.max_live_parameters, config_.max_reuse_distance}};
  }

  void gather_step(NaiveCoordinator& coordinator) {
    const oracle::HookTrace trace = oracle::make_hook_trace(static_cast<std::int64_t>(layers_));
    for (std::int64_t micro = 0; micro < config_.accumulation_steps; ++micro) {
      coordinator.begin_forward();
      for (const auto* events : {&trace.forward, &trace.backward}) {
        for (const oracle::HookEvent& event : *events) follow(coordinator, event);
      }
      keep_secondary(coordinator.release_leftovers());
    }
    keep_secondary(coordinator.release_all());
    Order persistent;
    for (std::size_t tensor = 0; tensor < numels_.size(); ++tensor) {
      if (numels_[tensor] > config_.param_persistence_threshold) continue;
      persistent.push_back(tensor);
      if (ranks_ > 1) call(CollectiveKind::all_gather, padded(tensor));
    }
    coordinator.regathered(persistent);
    secondary_.clear();
  }

  void keep_secondary(const Order& released) {
    if (config_.hpz_partition_size == 1) return;
    secondary_.insert(released.begin(), released.end());
  }

  void follow(NaiveCoordinator& coordinator, const oracle::HookEvent& event) {
    if (event.kind == oracle::HookEvent::Kind::release)
      keep_secondary(coordinator.release(event.index));
    if (event.kind != oracle::HookEvent::Kind::fetch) return;
    const auto plan = coordinator.fetch(event.index);
    gather(plan.gather);
    gather(plan.prefetch);
  }

  // Elements are padded to all ranks wherever they come from.
  void gather(const Order& tensors) {
    Order primary;
    Order secondary;
    for (const std::size_t tensor : tensors) {
      (secondary_.count(tensor) > 0 ? secondary : primary).push_back(tensor);
    }
    if (config_.quantized_weights) {
      if (ranks_ == 1) return;
      add_quantized_gather(counts_, padded(secondary),
                           std::min<std::int64_t>(config_.hpz_partition_size, ranks_));
      add_quantized_gather(counts_, padded(primary), ranks_);
      return;
    }
    gather_at_once(secondary, false, std::min<std::int64_t>(config_.hpz_partition_size, ranks_));
    gather_at_once(primary, config_.use_all_reduce_for_fetch_params, ranks_);
  }

  void gather_at_once(const Order& tensors, bool may_sum, std::int64_t ranks) {
    if (ranks_ == 1 || tensors.empty()) return;
    const bool alone = config_.allgather_sequential && config_.mics_shard_size == 0;
    std::int64_t together = 0;
    for (const std::size_t tensor : tensors) {
      if (alone) call(CollectiveKind::all_gather, padded(tensor), ranks);
      together += padded(tensor);
    }
    if (alone) return;
    const bool summed = may_sum && tensors.size() > 1 && config_.mics_shard_size == 0;
    call(summed ? CollectiveKind::all_reduce : CollectiveKind::all_gather, together, ranks);
  }

  // MiCS: what this rank has of the bucket's tensors, in one launch.
  void average_over_replicas(const Order& bucket) {
    std::int64_t own = 0;
    for (const std::size_t tensor : bucket) {
      const std::int64_t shard = padded(tensor) / ranks_;
      own += std::min(numels_[tensor], (place_ + 1) * shard) -
             std::min(numels_[tensor], place_ * shard);
    }
    if (replicas_ == 1 || own == 0) return;
    note(CollectiveKind::all_reduce, own, size_of(config_.accumulation_dtype()), replicas_);
  }

  void reduce(const Order& bucket) {
    std::int64_t fill = 0;
    std::int64_t with_padding = 0;
    for (const std::size_t tensor : bucket) {
      fill += numels_[tensor];
      with_padding += padded(tensor);
    }
    const bool whole = config_.contiguous_gradients && !config_.reduce_scatter &&
                       fill <= config_.reduce_bucket_size;
    const std::int64_t devices = config_.quantized_gradients ? config_.devices_per_node : 0;
    if (!whole && devices > 0 && ranks_ > devices) {
      for (const std::size_t tensor : bucket) {
        add_node_average(counts_, shapes_[tensor], ranks_, devices, config_.message_dtype());
      }
      return;
    }
    note(whole ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter,
         whole ? fill : with_padding, size_of(config_.message_dtype()));
  }

  StepConfig config_;
  std::size_t layers_;
  std::int64_t ranks_;               // that share one copy of the model
  std::int64_t replicas_;            // of it
  std::int64_t place_ = 0;           // of this rank in its copy
  std::set<std::size_t> secondary_;  // hpZ: tensors with a secondary shard
  std::vector<std::int64_t> numels_;
  std::vector<ModuleSpec> modules_;
  std::vector<bool> decays_;
  std::vector<Shape> shapes_;
  std::vector<std::int64_t> lengths_;              // padded, by group
  std::vector<std::vector<std::int64_t>> owners_;  // by tensor and element
  CollectiveCounts counts_{};
  double wire_bytes_ = 0;
};

}  // namespace dstune::test
