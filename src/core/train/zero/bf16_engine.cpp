#include "core/train/zero/bf16_engine.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/train/zero/layout/initial_parameters.hpp"
#include "core/train/zero/reduction/flattened.hpp"
#include "core/train/zero/reduction/gradient_sum.hpp"
#include "core/train/zero/replicated_engine.hpp"

namespace dstune {

Bf16Engine::Bf16Engine(const EngineContext& context)
    : EngineBase(context, LossScaler::Kind::zero),
      layouts_(groups(), parameters(), size(), false),
      states_(device(), collectives(), config().dtype,
              FrozenParameters(device(), parameters(), config().dtype, seed()), layouts_),
      gradients_(tensor_count()) {
  for (const std::size_t i : trained()) {
    fill_initial(device(), parameters(), i, 0, seed(), parameter(i));
  }
  states_.initialize_master();
  for (std::size_t group = 0; group < layouts_.size(); ++group) {
    sums_.push_back(
        make_buffer(device(), MemoryCategory::gradients, layouts_[group].padded(), DType::fp32));
  }
  zero_sums();
}

Tensor Bf16Engine::sum(std::size_t tensor) const {
  const Buffer& all = sums_[layouts_.group_of(tensor)];
  return all.tensor(DType::fp32).slice(layouts_.of(tensor).offset(tensor), numel(tensor));
}

void Bf16Engine::begin_micro_step(bool boundary) {
  boundary_ = boundary;
  zeroed_ = false;
}

// At the start of backward only the gradients of an earlier micro-step exist; they are zeroed, and
// this backward's are added to them. The gradients of the first micro-step become .grad as they
// are.
void Bf16Engine::take_gradient(std::size_t tensor, Buffer gradient) {
  if (!zeroed_) zero_gradients();
  Buffer& kept = gradients_[tensor];
  if (kept) {
    device().run(MemoryPass::accumulate,
                 Add{kept.tensor(config().dtype), gradient.tensor(config().dtype)});
  } else {
    kept = std::move(gradient);
  }
  if (config().immediate_grad_update) add_to_sum(tensor);
}

void Bf16Engine::zero_gradients() {
  zeroed_ = true;
  for (const Buffer& gradient : gradients_) {
    if (gradient)
      device().run(MemoryPass::zero_gradients, FillZero{gradient.tensor(config().dtype)});
  }
}

void Bf16Engine::add_to_sum(std::size_t tensor) {
  device().host_event(HostEvent::gradient_hook);
  const Buffer single = temporary(numel(tensor), DType::fp32);
  device().run(MemoryPass::accumulate,
               Cast{gradients_[tensor].tensor(config().dtype), single.tensor(DType::fp32)});
  device().run(MemoryPass::accumulate, Add{sum(tensor), single.tensor(DType::fp32)});
}

void Bf16Engine::end_backward() {
  if (!config().immediate_grad_update) {
    for (const ParameterGroup& group : groups()) {
      for (const std::size_t tensor : group.tensors) add_to_sum(tensor);
    }
  }
  if (boundary_) average();
}

// Whole groups are packed as stage 0 packs tensors: small groups share a call.
void Bf16Engine::average() {
  const PhaseScope phase(device().memory(), StepPhase::reduction);
  std::vector<std::int64_t> sizes;
  for (std::size_t group = 0; group < sums_.size(); ++group) {
    sizes.push_back(layouts_[group].padded());
  }
  const GradientSum reduction{device(), collectives(), config().message_dtype()};
  std::size_t begin = 0;
  for (const std::size_t end : pack_replicated(sizes, kReplicatedBucket)) {
    std::vector<Tensor> parts;
    for (; begin < end; ++begin) parts.push_back(sums_[begin].tensor(DType::fp32));
    const Flattened flat(device(), std::move(parts));
    reduction.all_reduce(flat.tensor(), configured_scaling(config(), size()));
    flat.copy_back();
  }
}

StepResult Bf16Engine::step() {
  find_norm();
  if (config().gradient_clipping > 0) clip();
  for (std::size_t group = 0; group < states_.groups(); ++group) {
    const std::int64_t count = layouts_[group].partition();
    states_.update(group, next_update(groups()[group].weight_decay),
                   sums_[group].tensor(DType::fp32).slice(rank() * count, count));
  }
  states_.gather();
  zero_sums();
  // The engine's zero_grad() after the step drops .grad and zeroes the sums once more.
  for (Buffer& gradient : gradients_) gradient.reset();
  zero_sums();
  return finish(false);
}

// Every rank has all averaged gradients: the norm needs no collective, but the host reads it.
void Bf16Engine::find_norm() {
  start_norm();
  for (const std::size_t i : trained()) {
    device().host_event(HostEvent::optimizer_tensor);
    device().run(MemoryPass::norm, AddSquares{sum(i), squares()});
  }
  device().read_scalar(squares(), HostSync::norm);
}

// DeepSpeed makes this pass only if the norm is above the limit. Here it is always made, so that
// the work of a step does not depend on its numbers.
void Bf16Engine::clip() {
  const Tensor factor = clip_factor();
  for (const std::size_t i : trained()) device().run(MemoryPass::unscale, ScaleBy{sum(i), factor});
}

void Bf16Engine::zero_sums() {
  for (const Buffer& sums : sums_)
    device().run(MemoryPass::zero_gradients, FillZero{sums.tensor(DType::fp32)});
}

std::vector<float> Bf16Engine::read_parameter(std::size_t tensor) {
  if (!is_trainable(tensor)) return states_.frozen().read(tensor);
  return collect(numel(tensor), [&](Tensor all) { states_.read_own(tensor, all); });
}

void Bf16Engine::write_parameter(std::size_t tensor, std::span<const float> values) {
  states_.write(tensor, values);
}

}  // namespace dstune
