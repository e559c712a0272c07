#include "core/train/zero/partitioned_engine.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/layout/initial_parameters.hpp"
#include "core/train/zero/reduction/gradient_passes.hpp"

namespace dstune {
namespace {

int bucket_copies(const StepConfig& config) {
  if (!config.contiguous_gradients) return 0;
  return config.overlap_comm ? 2 : 1;
}

// Stage 1 has its sums in the bucket, stage 2 the gradients of one micro-step.
DType bucket_dtype(const StepConfig& config) {
  return config.stage == 1 && config.sums_in_partition() ? DType::fp32 : config.dtype;
}

}  // namespace

PartitionedEngine::PartitionedEngine(const EngineContext& context, Master master)
    : EngineBase(context, LossScaler::Kind::zero),
      layouts_(groups(), parameters(), size(), config().round_robin_gradients),
      states_(device(), collectives(), config().dtype,
              FrozenParameters(device(), parameters(), config().dtype, seed()), layouts_, master),
      bucket_(device(), bucket_dtype(config()), config().reduce_bucket_size,
              bucket_copies(config())),
      sums_(config().sums_in_partition()
                ? std::make_unique<PartitionSums>(device(), layouts_, rank())
                : nullptr),
      average_(make_bucket_average(context, layouts_, sums_.get())),
      partition_(device(), config().dtype, parameters(), layouts_, rank(),
                 config().contiguous_gradients),
      kept_(tensor_count()) {
  for (const std::size_t i : trained()) {
    fill_initial(device(), parameters(), i, 0, seed(), parameter(i));
  }
  if (master == Master::here) states_.initialize_master();
}

void PartitionedEngine::take_gradient(std::size_t tensor, Buffer gradient) {
  bucket_.allocate();
  if (!is_stage_1()) {
    reduce_later(tensor, std::move(gradient));
    return;
  }
  keep(tensor, std::move(gradient));
  if (boundary_ && config().overlap_comm) reduce_kept(tensor);
}

void PartitionedEngine::keep(std::size_t tensor, Buffer gradient) {
  const DType dtype = config().accumulation_dtype();
  if (dtype != config().dtype) {
    Buffer cast = make_buffer(device(), MemoryCategory::gradients, numel(tensor), dtype);
    device().run(MemoryPass::accumulate, Cast{gradient.tensor(config().dtype), cast.tensor(dtype)});
    gradient = std::move(cast);
  }
  Buffer& kept = kept_[tensor];
  if (kept) {
    device().run(MemoryPass::accumulate, Add{kept.tensor(dtype), gradient.tensor(dtype)});
  } else {
    kept = std::move(gradient);
  }
}

void PartitionedEngine::reduce_kept(std::size_t tensor) {
  if (!has_own_sums()) {
    reduce_later(tensor, std::move(kept_[tensor]));
    return;
  }
  Buffer gradient = make_buffer(device(), MemoryCategory::gradients, numel(tensor), config().dtype);
  device().run(MemoryPass::message_cast, Cast{kept_[tensor].tensor(config().accumulation_dtype()),
                                              gradient.tensor(config().dtype)});
  reduce_later(tensor, std::move(gradient));
}

void PartitionedEngine::reduce_later(std::size_t tensor, Buffer gradient) {
  device().host_event(HostEvent::gradient_hook);
  if (bucket_.must_flush_before(numel(tensor))) flush();
  if (config().offloads_optimizer() && numel(tensor) > config().reduce_bucket_size) {
    gradient = clone(std::move(gradient));
  }
  bucket_.add(tensor, std::move(gradient));
}

// An extra-large gradient, which is not copied into the bucket, must be nobody else's memory where
// the host reads it later.
Buffer PartitionedEngine::clone(Buffer gradient) {
  const Tensor from = gradient.tensor(bucket_dtype(config()));
  Buffer copy = make_buffer(device(), MemoryCategory::gradients, from.numel, from.dtype);
  device().run(MemoryPass::bucket_copy, Copy{from, copy.tensor(from.dtype)});
  return copy;
}

void PartitionedEngine::flush() {
  if (bucket_.empty()) return;
  const PhaseScope phase(device().memory(), StepPhase::reduction);
  if (config().overlap_comm && !config().contiguous_gradients) wait_for_reduction();
  const Stream stream = config().overlap_comm ? Stream::reduction : Stream::compute;
  device().wait(stream, device().record(Stream::compute));
  // The reduction before this one must be over, since its bucket is filled next.
  device().wait(Stream::compute, reduced_);
  reduce_bucket(stream);
  const bool has_two_buckets = config().overlap_comm && config().contiguous_gradients;
  if (has_two_buckets && config().behaviour.waits_for_each_bucket)
    device().wait(Stream::compute, reduced_);
  bucket_.clear();
}

void PartitionedEngine::reduce_bucket(Stream stream) {
  const StreamScope scope(device(), stream);
  average_->average(bucket_);
  for (GradientBucket::Entry& entry : bucket_.entries()) {
    entry.own.used_on(stream);
    if (partition_.holds(entry.tensor)) {
      take_owned(entry);
      if (keeps_taken()) kept_[entry.tensor] = std::move(entry.own);
    } else {
      leave(entry);
    }
  }
  reduced_ = device().record(stream);
}

// A gradient that another rank owns is dropped at the end of the step in stage 1. In stage 2 it is
// dropped at once, or, if it is in a list that the reduction may still read, at the next wait.
void PartitionedEngine::leave(GradientBucket::Entry& entry) {
  if (is_stage_1() && !has_own_sums()) {
    kept_[entry.tensor] = std::move(entry.own);
  } else if (config().overlap_comm && !config().contiguous_gradients) {
    previous_.push_back(std::move(entry.own));
  }
}

// With sums in the partition DeepSpeed copies no gradient out of its list, nor an extra-large one:
// it stays until the end of backward, in stage 1 until the update. What goes to the host is
// dropped.
bool PartitionedEngine::keeps_taken() const {
  if (!sums_) return false;
  return is_stage_1() ? !config().contiguous_gradients
                      : !(config().offloads_optimizer() && boundary_);
}

void PartitionedEngine::wait_for_reduction() {
  device().host_sync(HostSync::reduction);
  previous_.clear();
}

// Without overlap, stage 1 reduces only after backward, in registration order of the groups.
void PartitionedEngine::end_backward() {
  if (is_stage_1() && !boundary_) return;
  if (is_stage_1() && !config().overlap_comm) {
    for (const ParameterGroup& group : groups()) {
      for (const std::size_t tensor : group.tensors) reduce_kept(tensor);
    }
  }
  flush();
  if (config().overlap_comm) wait_for_reduction();
  end_micro_step();
  if (sums_ && is_stage_1()) return;  // their parts of other ranks lie in the bucket
  bucket_.free_memory();
  if (!has_own_sums()) drop_kept();
}

void PartitionedEngine::end_micro_step() {
  if (has_own_sums()) {
    partition_.accumulate_into(kept_, config().accumulation_dtype());
  } else {
    owned().end_micro_step(boundary_);
  }
}

void PartitionedEngine::drop_kept() {
  for (Buffer& kept : kept_) kept.reset();
  bucket_.free_memory();
}

StepResult PartitionedEngine::step() {
  if (overflowed()) {
    drop_kept();
    owned().drop();
    return finish(true);
  }
  const Tensor factor = find_clip_factor();
  drop_kept();
  for (std::size_t group = 0; group < states_.groups(); ++group) update(group, factor);
  states_.gather();
  return finish(false);
}

bool PartitionedEngine::checks_overflow() const {
  return config().dtype == DType::fp16 ||
         (config().dtype == DType::bf16 && config().check_grad_overflow);
}

bool PartitionedEngine::overflowed() {
  if (!checks_overflow()) return false;
  return any_overflow(collectives(), [&](Tensor flag) { owned().find_overflow(flag); });
}

Tensor PartitionedEngine::find_clip_factor() {
  start_norm();
  for (std::size_t group = 0; group < states_.groups(); ++group) {
    add_squares_of(collectives(), [&](Tensor sum) { owned().add_squares(group, sum); });
  }
  return clip_factor();
}

void PartitionedEngine::update(std::size_t group, Tensor factor) {
  const Buffer flat = owned().flattened(group);
  const Tensor gradients = flat.tensor(DType::fp32);
  device().run(MemoryPass::unscale, ScaleBy{gradients, factor});
  states_.update(group, next_update(groups()[group].weight_decay), gradients);
}

std::vector<float> PartitionedEngine::read_parameter(std::size_t tensor) {
  if (!is_trainable(tensor)) return states_.frozen().read(tensor);
  return collect(numel(tensor), [&](Tensor all) { states_.read_own(tensor, all); });
}

void PartitionedEngine::write_parameter(std::size_t tensor, std::span<const float> values) {
  states_.write(tensor, values);
}

}  // namespace dstune
