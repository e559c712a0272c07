#include "core/train/zero/partitioned_engine.hpp"

#include <cmath>
#include <utility>

#include "core/train/zero/bucket_average.hpp"
#include "core/train/zero/gradient_passes.hpp"
#include "core/train/zero/initial_parameters.hpp"

namespace dstune {
namespace {

std::vector<FlatLayout> make_layouts(const EngineContext& context) {
  std::vector<FlatLayout> layouts;
  for (const auto& group : make_parameter_groups(context.config.optimizer, *context.parameters)) {
    layouts.emplace_back(group, *context.parameters, context.collectives->size(),
                         context.config.round_robin_gradients);
  }
  return layouts;
}

}  // namespace

PartitionedEngine::PartitionedEngine(const EngineContext& context)
    : EngineBase(context, LossScaler::Kind::zero),
      layouts_(make_layouts(context)),
      states_(layouts_.size()),
      group_of_(tensor_count()),
      bucket_(device(), config().dtype, config().reduce_bucket_size, config().overlap_comm ? 2 : 1),
      partition_(device(), config().dtype, parameters(), layouts_, rank()),
      kept_(tensor_count()) {
  for (std::size_t group = 0; group < states_.size(); ++group) allocate(group);
}

void PartitionedEngine::allocate(std::size_t group) {
  const FlatLayout& layout = layouts_[group];
  Group& state = states_[group];
  const DType dtype = config().dtype;
  state.flat = make_buffer(device(), MemoryCategory::parameters, layout.padded(), dtype);
  const Tensor flat = state.flat.tensor(dtype);
  for (const std::size_t tensor : layout.order()) {
    group_of_[tensor] = group;
    fill_initial(device(), model(), parameters(), tensor, 0, seed(), parameter(tensor));
  }
  const std::int64_t padding = layout.padded() - layout.numel();
  if (padding > 0) device().fill_zero(flat.slice(layout.numel(), padding));
  state.master = make_buffer(device(), MemoryCategory::optimizer, layout.partition(), DType::fp32);
  device().cast(own_partition(group), state.master.tensor(DType::fp32));
}

Tensor PartitionedEngine::parameter(std::size_t tensor) const {
  const std::size_t group = group_of_[tensor];
  return states_[group]
      .flat.tensor(config().dtype)
      .slice(layouts_[group].offset(tensor), numel(tensor));
}

Tensor PartitionedEngine::own_partition(std::size_t group) const {
  const std::int64_t count = layouts_[group].partition();
  return states_[group].flat.tensor(config().dtype).slice(rank() * count, count);
}

void PartitionedEngine::gradient_ready(std::size_t tensor, Buffer gradient) {
  bucket_.allocate();
  if (!is_stage_1()) {
    reduce_later(tensor, std::move(gradient));
    return;
  }
  keep(tensor, std::move(gradient));
  if (boundary_ && config().overlap_comm) reduce_later(tensor, std::move(kept_[tensor]));
}

void PartitionedEngine::keep(std::size_t tensor, Buffer gradient) {
  Buffer& kept = kept_[tensor];
  if (kept) {
    passes().add(Pass::accumulate, kept.tensor(config().dtype), gradient.tensor(config().dtype));
  } else {
    kept = std::move(gradient);
  }
}

void PartitionedEngine::reduce_later(std::size_t tensor, Buffer gradient) {
  device().host_event(HostEvent::gradient_hook);
  if (bucket_.must_flush_before(numel(tensor))) flush();
  bucket_.add(tensor, std::move(gradient));
}

void PartitionedEngine::flush() {
  if (bucket_.empty()) return;
  const PhaseScope phase(device().memory(), StepPhase::reduction);
  average_bucket();
  for (GradientBucket::Entry& entry : bucket_.entries()) {
    if (partition_.holds(entry.tensor)) {
      partition_.take(entry.tensor, entry.gradient);
    } else if (is_stage_1()) {
      kept_[entry.tensor] = std::move(entry.own);  // stage 1 drops what it does not own at the end
    }
  }
  bucket_.clear();
}

void PartitionedEngine::average_bucket() {
  const Stream stream = config().overlap_comm ? Stream::reduction : Stream::compute;
  const BucketAverage average{device(), collectives(), stream, config().reduce_bucket_size};
  if (!config().reduce_scatter) {
    average.as_whole(bucket_.contents());
    return;
  }
  std::vector<BucketSlice> slices;
  for (const GradientBucket::Entry& entry : bucket_.entries()) {
    for (const auto& piece : layouts_[group_of_[entry.tensor]].pieces(entry.tensor)) {
      append_slice(slices, {piece.owner, piece.numel});
    }
  }
  average.by_slices(bucket_.contents(), slices);
}

void PartitionedEngine::end_backward() {
  if (is_stage_1()) {
    if (!boundary_) return;
    if (!config().overlap_comm) reduce_kept();
  }
  flush();
  if (config().overlap_comm) device().host_sync(HostSync::reduction);
  partition_.accumulate();
  bucket_.free_memory();
  for (Buffer& kept : kept_) kept.reset();
}

// Without overlap, stage 1 reduces only after backward, in registration order of the groups.
void PartitionedEngine::reduce_kept() {
  for (const ParameterGroup& group : groups()) {
    for (const std::size_t tensor : group.tensors) {
      if (kept_[tensor]) reduce_later(tensor, std::move(kept_[tensor]));
    }
  }
}

StepResult PartitionedEngine::step() {
  if (overflowed()) {
    partition_.drop_sum();
    return finish(true, 0);
  }
  const double norm = global_norm() / loss_scale();
  const double factor = unscale_factor(norm, config().gradient_clipping, loss_scale());
  for (std::size_t group = 0; group < states_.size(); ++group) update(group, factor);
  if (size() > 1) {
    const PhaseScope phase(device().memory(), StepPhase::parameters);
    for (std::size_t group = 0; group < states_.size(); ++group) {
      collectives().all_gather(own_partition(group), states_[group].flat.tensor(config().dtype),
                               Purpose::parameters, Stream::compute);
    }
  }
  return finish(false, norm);
}

bool PartitionedEngine::overflowed() {
  const bool checks = config().dtype == DType::fp16 ||
                      (config().dtype == DType::bf16 && config().check_grad_overflow);
  if (!checks) return false;
  bool found = false;
  for (std::size_t group = 0; group < states_.size(); ++group) {
    for (const OwnedRange& range : partition_.ranges(group)) {
      found = has_overflow_like_zero(device(), partition_.sum(range)) || found;
    }
  }
  return collectives().all_reduce_scalar(found ? 1 : 0, ReduceOp::max, Purpose::overflow) > 0;
}

double PartitionedEngine::global_norm() {
  double squares = 0;
  for (std::size_t group = 0; group < states_.size(); ++group) {
    double own = 0;
    for (const OwnedRange& range : partition_.ranges(group)) {
      device().host_event(HostEvent::optimizer_tensor);
      own += sum_of_squares_in_double(device(), partition_.sum(range));
    }
    squares += collectives().all_reduce_scalar(own, ReduceOp::sum, Purpose::norm);
  }
  return std::sqrt(squares);
}

// The partition's gradients, flattened in the model dtype and cast: all three live together.
Buffer PartitionedEngine::master_gradients(std::size_t group) {
  const std::int64_t count = layouts_[group].partition();
  Buffer flat = temporary(count, config().dtype);
  std::int64_t filled = 0;
  for (const OwnedRange& range : partition_.ranges(group)) {
    passes().copy(Pass::master_gradient, partition_.sum(range),
                  flat.tensor(config().dtype).slice(range.partition_offset, range.numel));
    filled = range.partition_offset + range.numel;
  }
  if (filled < count) {
    passes().fill_zero(Pass::master_gradient,
                       flat.tensor(config().dtype).slice(filled, count - filled));
  }
  if (config().dtype == DType::fp32) return flat;
  Buffer result = temporary(count, DType::fp32);
  passes().cast(Pass::master_gradient, flat.tensor(config().dtype), result.tensor(DType::fp32));
  return result;
}

void PartitionedEngine::update(std::size_t group, double factor) {
  Group& state = states_[group];
  const Buffer gradients = master_gradients(group);
  // One buffer holds the gradients of all groups: it goes with the last of them.
  if (group + 1 == states_.size()) partition_.drop_sum();
  passes().scale(Pass::unscale, gradients.tensor(DType::fp32), factor);
  state.optimizer.update(device(), next_update(groups()[group].weight_decay),
                         gradients.tensor(DType::fp32), state.master.tensor(DType::fp32));
  passes().cast(Pass::master_cast, state.master.tensor(DType::fp32), own_partition(group));
}

std::vector<float> PartitionedEngine::read_parameter(std::size_t tensor) {
  const std::size_t group = group_of_[tensor];
  return collect(numel(tensor), [&](Tensor all) {
    for (const OwnedRange& range : partition_.ranges(group)) {
      if (range.tensor != tensor) continue;
      device().copy(
          states_[group].master.tensor(DType::fp32).slice(range.partition_offset, range.numel),
          all.slice(range.tensor_offset, range.numel));
    }
  });
}

void PartitionedEngine::write_parameter(std::size_t tensor, std::span<const float> values) {
  const std::size_t group = group_of_[tensor];
  device().write(values, parameter(tensor));
  for (const OwnedRange& range : partition_.ranges(group)) {
    if (range.tensor != tensor) continue;
    device().write(
        values.subspan(static_cast<std::size_t>(range.tensor_offset),
                       static_cast<std::size_t>(range.numel)),
        states_[group].master.tensor(DType::fp32).slice(range.partition_offset, range.numel));
  }
}

}  // namespace dstune
