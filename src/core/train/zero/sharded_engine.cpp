#include "core/train/zero/sharded_engine.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/gather/make_parameter_coordinator.hpp"
#include "core/train/zero/layout/initial_parameters.hpp"
#include "core/train/zero/layout/leaf_modules.hpp"
#include "core/train/zero/offload/host_parameter_shards.hpp"
#include "core/train/zero/reduction/gradient_passes.hpp"

namespace dstune {

using Pass = ParameterCoordinator::Pass;

namespace {

// MiCS coalesces calls instead of packing: every tensor is received where it stays.
GatherMethod gather_method(const StepConfig& config) {
  if (config.mics_shard_size > 0) return GatherMethod::coalesced;
  if (config.allgather_sequential) return GatherMethod::sequential;
  return config.use_all_reduce_for_fetch_params ? GatherMethod::all_reduce : GatherMethod::packed;
}

GatheredParameters::Setup gather_setup(const StepConfig& config, const ShardGroups& groups) {
  return {config.dtype, config.overlap_comm ? Stream::gather : Stream::compute,
          gather_method(config), groups.secondary(), config.quantized_weights};
}

}  // namespace

ShardedEngine::ShardedEngine(const EngineContext& context, States states)
    : EngineBase(context, LossScaler::Kind::zero),
      shard_groups_(config(), collectives()),
      layout_(groups(), parameters(), shard_groups_.shards().size(), config().sub_group_size),
      kept_(states == States::elsewhere
                ? nullptr
                : std::make_unique<DeviceGradientShards>(config(), device(),
                                                         shard_groups_.replicas(), layout_)),
      gradients_(config(), device(), shard_groups_.shards(), layout_, reductions()),
      quantized_(QuantizedGradients::make(config(), device(), collectives(), parameters())),
      coordinator_(make_parameter_coordinator(config(), parameters())),
      gathered_(device(), shard_groups_.shards(), layout_, gather_setup(config(), shard_groups_)),
      leaf_of_(parameters().modules.size()) {
  shards_ = make_shards();
  if (kept_ != nullptr) begin_states();
  gathered_.use(*shards_);
  coordinator_.watch(shards_->on_drive());
  gradients_.quantize_with(quantized_.get());
  for (const std::size_t leaf : find_leaf_modules(config(), parameters())) {
    for (std::size_t inner = leaf; inner < parameters().end_of(leaf); ++inner) {
      leaf_of_[inner] = leaf;
    }
  }
}

std::unique_ptr<ParameterShards> ShardedEngine::make_shards() const {
  const int rank = shards().rank();
  const auto fill = [&](std::size_t tensor, Tensor own) {
    fill_initial(device(), parameters(), tensor, rank * layout_.shard(tensor), seed(), own);
  };
  if (config().offloads_parameters()) {
    return std::make_unique<HostParameterShards>(device(), config(), groups(), layout_, rank, fill);
  }
  return std::make_unique<DeviceParameterShards>(device(), layout_, rank, config().dtype, fill);
}

void ShardedEngine::begin_states() {
  gradients_.bring_to(*kept_);
  states_.resize(layout_.sub_groups().size());
  master_ = make_buffer(device(), MemoryCategory::optimizer, layout_.numel(), DType::fp32);
  for (const SubGroup& group : layout_.sub_groups()) {
    shards_->read(group, {master_of(group)});
  }
  for (const SubGroup& group : layout_.sub_groups()) {
    if (!shards_->of(group)) shards_->write(group, {master_of(group)});
  }
  bring_each_once();
}

// DeepSpeed gathers each tensor to put a hook on its gradient.
void ShardedEngine::bring_each_once() {
  for (const std::size_t tensor : trained()) {
    shards_->bring({tensor});
    shards_->let_go({tensor});
  }
}

void ShardedEngine::begin_micro_step(bool boundary) {
  ++micro_step_;
  gradients_.begin_micro_step(micro_step_ == 0, boundary);
  coordinator_.begin_forward();
}

// The modules inside a leaf module have no hooks.
bool ShardedEngine::has_hooks(std::size_t module) const {
  return !leaf_of_[module] || *leaf_of_[module] == module;
}

void ShardedEngine::fetch(std::size_t module) { fetch(module, Pass::forward); }

void ShardedEngine::release(std::size_t module) { release(module, Pass::forward); }

void ShardedEngine::fetch_for_backward(std::size_t module) { fetch(module, Pass::backward); }

void ShardedEngine::release_after_backward(std::size_t module) { release(module, Pass::backward); }

void ShardedEngine::fetch(std::size_t module, Pass pass) {
  if (!has_hooks(module)) return;
  device().host_event(HostEvent::sub_module_hook);
  const ParameterCoordinator::Fetch plan = coordinator_.fetch(module, pass);
  gather(plan.gather);
  gathered_.await(plan.await);
  gather(coordinator_.prefetch());
  shards_->read_ahead(coordinator_.read_ahead());
  note_live();
  if (leaf_of_[module]) open_leaf_ = module;
}

// The shard of a tensor that stays gathered needs no buffer of a drive any more.
void ShardedEngine::gather(const ParameterShards::Tensors& tensors) {
  gathered_.gather(tensors);
  for (const std::size_t tensor : tensors) {
    if (coordinator_.is_persistent(tensor)) shards_->let_go({tensor});
  }
}

void ShardedEngine::release(std::size_t module, Pass pass) {
  if (!has_hooks(module)) return;
  device().host_event(HostEvent::sub_module_hook);
  if (open_leaf_ == module) reduce_leaf();
  gathered_.release(coordinator_.release(module, pass));
}

void ShardedEngine::note_live() const {
  if (shards().size() > 1) device().ledger().note_live(coordinator_.live());
}

Tensor ShardedEngine::parameter(std::size_t tensor) const { return gathered_.full(tensor); }

std::shared_ptr<const Buffer> ShardedEngine::memory_of(std::size_t tensor) const {
  return gathered_.memory_of(tensor);
}

// The gradients of a leaf module wait for the end of its backward.
void ShardedEngine::take_gradient(std::size_t tensor, Buffer gradient) {
  device().host_event(HostEvent::gradient_hook);
  if (open_leaf_) {
    leaf_gradients_.emplace(tensor, std::move(gradient));
  } else {
    gradients_.add(tensor, std::move(gradient));
  }
}

// Gradients are reduced in the order of the sub-groups, not of their arrival.
void ShardedEngine::reduce_leaf() {
  for (const SubGroup& group : layout_.sub_groups()) {
    for (const std::size_t tensor : group.tensors) {
      const auto gradient = leaf_gradients_.find(tensor);
      if (gradient != leaf_gradients_.end()) gradients_.add(tensor, std::move(gradient->second));
    }
  }
  leaf_gradients_.clear();
  open_leaf_.reset();
}

void ShardedEngine::end_backward() {
  gradients_.flush();
  device().host_sync(HostSync::reduction, gradients_.reduced());
  gathered_.release(coordinator_.release_leftovers());
}

StepResult ShardedEngine::step() {
  micro_step_ = -1;
  gathered_.release(coordinator_.release_all());
  if (config().dtype == DType::fp16 && overflowed()) return finish(true);
  update();
  gather_persistent();
  return finish(false);
}

void ShardedEngine::update() {
  start_norm();
  for (const SubGroup& group : layout_.sub_groups()) add_norm_of(group);
  const Tensor factor = clip_factor();
  for (std::size_t i = 0; i < layout_.sub_groups().size(); ++i) update_sub_group(i, factor);
}

void ShardedEngine::gather_persistent() {
  const PhaseScope phase(device().memory(), StepPhase::parameters);
  const auto tensors = coordinator_.persistent_tensors();
  gathered_.gather_persistent(tensors);
  gathered_.forget_secondary(trained());
  coordinator_.regathered(tensors);
  note_live();
}

bool ShardedEngine::overflowed() {
  return any_overflow(shards(),
                      [&](Tensor flag) { find_overflow_in_shard(device(), kept_->all(), flag); });
}

void ShardedEngine::add_norm_of(const SubGroup& group) {
  add_squares_of(shards(), [&](Tensor sum) {
    for (const std::size_t tensor : group.tensors) {
      device().host_event(HostEvent::optimizer_tensor);
      add_squares_in_double(device(), kept_->shard(tensor), sum);
    }
  });
}

void ShardedEngine::update_sub_group(std::size_t index, Tensor factor) {
  const SubGroup& group = layout_.sub_groups()[index];
  const DType accumulated = config().accumulation_dtype();
  Buffer gradients = temporary(group.numel, accumulated);
  for (const std::size_t tensor : group.tensors) {
    device().run(MemoryPass::master_gradient,
                 Copy{kept_->shard(tensor),
                      gradients.tensor(accumulated)
                          .slice(layout_.offset(tensor) - group.offset, layout_.shard(tensor))});
  }
  if (accumulated != DType::fp32) {
    Buffer single = temporary(group.numel, DType::fp32);
    device().run(MemoryPass::master_gradient,
                 Cast{gradients.tensor(accumulated), single.tensor(DType::fp32)});
    gradients = std::move(single);
  }
  const Tensor gradient = gradients.tensor(DType::fp32);
  const Tensor master = master_of(group);
  device().run(MemoryPass::unscale, ScaleBy{gradient, factor});
  states_[index].update(device(), next_update(group.weight_decay), gradient, master);
  shards_->write(group, {master});
}

std::vector<float> ShardedEngine::read_parameter(std::size_t tensor) {
  return collect(shards(), numel(tensor), [&](Tensor all) {
    const std::int64_t count = layout_.filled(tensor, shards().rank());
    if (count == 0) return;
    const Tensor own = all.slice(shards().rank() * layout_.shard(tensor), count);
    if (is_trainable(tensor)) {
      read_master(tensor, own);
    } else {
      shards_->with_shard(tensor, [&](const PlacedTensor& shard) {
        copy_weights(device(), shard.slice(0, count), {own});
      });
    }
  });
}

void ShardedEngine::write_parameter(std::size_t tensor, std::span<const float> values) {
  const std::int64_t count = layout_.filled(tensor, shards().rank());
  if (count == 0) return;
  const auto own = values.subspan(static_cast<std::size_t>(shards().rank() * layout_.shard(tensor)),
                                  static_cast<std::size_t>(count));
  const Buffer given = temporary(count, DType::fp32);
  device().write(own, given.tensor(DType::fp32));
  shards_->with_shard(tensor, [&](const PlacedTensor& shard) {
    copy_weights(device(), {given.tensor(DType::fp32)}, shard.slice(0, count));
  });
  if (is_trainable(tensor)) write_master(tensor, own);
}

void ShardedEngine::read_master(std::size_t tensor, Tensor own) {
  device().run(Copy{master_of(tensor).slice(0, own.numel), own});
}

void ShardedEngine::write_master(std::size_t tensor, std::span<const float> own) {
  device().write(own, master_of(tensor).slice(0, static_cast<std::int64_t>(own.size())));
}

}  // namespace dstune
