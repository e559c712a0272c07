#include <algorithm>
#include <cmath>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/train/zero/reduction/gradient_passes.hpp"
#include "core/train/zero/replicated_engine.hpp"

namespace dstune {

// DeepSpeed updates once with zero gradients at the start, so that the state exists.
UnfusedEngine::UnfusedEngine(const EngineContext& context)
    : ReplicatedEngine(context, false), masters_(tensor_count()), states_(groups().size()) {
  for (const std::size_t i : trained()) {
    masters_[i] = make_buffer(device(), MemoryCategory::optimizer, numel(i), DType::fp32);
    device().run(Cast{parameter(i), master(i)});
  }
  for (std::size_t group = 0; group < groups().size(); ++group) {
    std::int64_t count = 0;
    for (const std::size_t i : groups()[group].tensors) count += numel(i);
    states_[group].ensure(device(), config().optimizer, count);
  }
}

StepResult UnfusedEngine::step() {
  if (is<LambSettings>(config().optimizer)) return step_lamb();
  if (overflowed()) {
    drop_gradients();
    return finish(true);
  }
  start_norm();
  std::vector<Buffer> copies(tensor_count());
  for (const ParameterGroup& group : groups()) {
    for (const std::size_t i : group.tensors) {
      device().run(MemoryPass::norm, AddSquares{gradient(i), squares()});
    }
    device().read_scalar(squares(), HostSync::norm);  // get_weight_norm, once a group
    for (const std::size_t i : group.tensors) {
      copies[i] = temporary(numel(i), DType::fp32);
      device().run(MemoryPass::master_gradient, Cast{gradient(i), copies[i].tensor(DType::fp32)});
    }
  }
  const Tensor factor = clip_factor();
  for (const std::size_t i : trained()) {
    device().run(MemoryPass::unscale, ScaleBy{copies[i].tensor(DType::fp32), factor});
  }
  update_groups(1, [&](std::size_t i) {
    return UpdatedTensor{copies[i].tensor(DType::fp32), master(i)};
  });
  copies.clear();
  write_back();
  return finish(false);
}

// The gradients stay in 16 bit: Lamb's kernel unscales them and writes the 16-bit parameters, which
// are then written once more.
StepResult UnfusedEngine::step_lamb() {
  const Buffer unused = flattened();  // DeepSpeed makes it and keeps it to the end
  const double scaled_norm = norm_of_flattened();
  if (any_overflow_of_hosts(collectives(), !std::isfinite(scaled_norm))) {
    drop_gradients();
    return finish(true);
  }
  const double limit = config().gradient_clipping;
  const double excess = limit > 0 ? (scaled_norm / loss_scale() + 1e-6) / limit : 1;
  update_groups(loss_scale() * std::max(1.0, excess), [&](std::size_t i) {
    return UpdatedTensor{gradient(i), master(i), parameter(i)};
  });
  write_back();
  return finish(false);
}

Buffer UnfusedEngine::flattened() const {
  Buffer flat = temporary(parameters().trainable_total(), config().dtype);
  std::int64_t offset = 0;
  for (const std::size_t i : trained()) {
    device().run(MemoryPass::norm,
                 Copy{gradient(i), flat.tensor(config().dtype).slice(offset, numel(i))});
    offset += numel(i);
  }
  return flat;
}

// The norm is read by the host (get_weight_norm).
double UnfusedEngine::norm_of_flattened() {
  const Buffer flat = flattened();
  const Buffer single = temporary(parameters().trainable_total(), DType::fp32);
  device().run(MemoryPass::norm, Cast{flat.tensor(config().dtype), single.tensor(DType::fp32)});
  start_norm();
  device().run(MemoryPass::norm, AddSquares{single.tensor(DType::fp32), squares()});
  return std::sqrt(device().read_scalar(squares(), HostSync::norm));
}

template <class Updated>
void UnfusedEngine::update_groups(double gradient_scale, Updated updated) {
  for (std::size_t group = 0; group < groups().size(); ++group) {
    std::vector<UpdatedTensor> tensors;
    for (const std::size_t i : groups()[group].tensors) {
      device().host_event(HostEvent::optimizer_tensor);
      tensors.push_back(updated(i));
    }
    NextUpdate next = next_update(groups()[group].weight_decay);
    next.gradient_scale = gradient_scale;
    states_[group].update(device(), next, tensors);
  }
}

void UnfusedEngine::write_back() {
  for (const std::size_t i : trained()) {
    device().run(MemoryPass::master_cast, Cast{master(i), parameter(i)});
  }
  drop_gradients();
}

}  // namespace dstune
