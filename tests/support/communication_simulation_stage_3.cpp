#include <algorithm>
#include <utility>

#include "tests/support/communication_simulation.hpp"

namespace dstune::test {

// The first step records the order of modules and has no persistent tensors yet: the second is
// like all others.
void CommunicationSimulation::count_stage_3() {
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

NaiveCoordinator CommunicationSimulation::make_coordinator() const {
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

void CommunicationSimulation::gather_step(NaiveCoordinator& coordinator) {
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

void CommunicationSimulation::keep_secondary(const Order& released) {
  if (config_.hpz_partition_size == 1) return;
  secondary_.insert(released.begin(), released.end());
}

void CommunicationSimulation::follow(NaiveCoordinator& coordinator,
                                     const oracle::HookEvent& event) {
  if (event.kind == oracle::HookEvent::Kind::release)
    keep_secondary(coordinator.release(event.index));
  if (event.kind != oracle::HookEvent::Kind::fetch) return;
  const auto plan = coordinator.fetch(event.index);
  gather(plan.gather);
  gather(plan.prefetch);
}

// Elements are padded to all ranks wherever they come from.
void CommunicationSimulation::gather(const Order& tensors) {
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

void CommunicationSimulation::gather_at_once(const Order& tensors, bool may_sum,
                                             std::int64_t ranks) {
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
void CommunicationSimulation::average_over_replicas(const Order& bucket) {
  std::int64_t own = 0;
  for (const std::size_t tensor : bucket) {
    const std::int64_t shard = padded(tensor) / ranks_;
    own +=
        std::min(numels_[tensor], (place_ + 1) * shard) - std::min(numels_[tensor], place_ * shard);
  }
  if (replicas_ == 1 || own == 0) return;
  note(CollectiveKind::all_reduce, own, size_of(config_.accumulation_dtype()), replicas_);
}

void CommunicationSimulation::reduce(const Order& bucket) {
  std::int64_t fill = 0;
  std::int64_t with_padding = 0;
  for (const std::size_t tensor : bucket) {
    fill += numels_[tensor];
    with_padding += padded(tensor);
  }
  const bool whole =
      config_.contiguous_gradients && !config_.reduce_scatter && fill <= config_.reduce_bucket_size;
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

}  // namespace dstune::test
