#include "core/train/zero/replicated_engine.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/train/zero/layout/initial_parameters.hpp"
#include "core/train/zero/reduction/flattened.hpp"
#include "core/train/zero/reduction/gradient_passes.hpp"
#include "core/train/zero/reduction/gradient_sum.hpp"

namespace dstune {

std::vector<std::size_t> pack_replicated(const std::vector<std::int64_t>& sizes,
                                         std::int64_t limit) {
  std::vector<std::size_t> ends;
  std::int64_t fill = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    fill += sizes[i];
    if (fill <= limit && i + 1 < sizes.size()) continue;
    ends.push_back(i + 1);
    fill = 0;
  }
  return ends;
}

ReplicatedEngine::ReplicatedEngine(const EngineContext& context, bool flat)
    : EngineBase(context, LossScaler::Kind::wrapper),
      frozen_(device(), parameters(), config().dtype, seed()),
      views_(tensor_count()),
      gradients_(tensor_count()) {
  const DType dtype = config().dtype;
  const auto allocate = [&](std::int64_t count) {
    storage_.push_back(make_buffer(device(), MemoryCategory::parameters, count, dtype));
    return storage_.back().tensor(dtype);
  };
  const Tensor all = flat ? allocate(parameters().trainable_total()) : Tensor{};
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < tensor_count(); ++i) {
    if (frozen_.has(i)) {
      views_[i] = frozen_.parameter(i);
      continue;
    }
    views_[i] = flat ? all.slice(offset, numel(i)) : allocate(numel(i));
    offset += numel(i);
    fill_initial(device(), parameters(), i, 0, seed(), views_[i]);
  }
}

void ReplicatedEngine::take_gradient(std::size_t tensor, Buffer gradient) {
  Buffer& kept = gradients_[tensor];
  if (kept) {
    device().run(MemoryPass::accumulate,
                 Add{kept.tensor(config().dtype), gradient.tensor(config().dtype)});
  } else {
    kept = std::move(gradient);
  }
}

void ReplicatedEngine::end_backward() {
  if (!boundary_) return;
  std::vector<std::int64_t> sizes;
  for (const std::size_t i : trained()) sizes.push_back(numel(i));
  std::size_t begin = 0;
  for (const std::size_t end : pack_replicated(sizes, kReplicatedBucket)) {
    average(begin, end);
    begin = end;
  }
}

void ReplicatedEngine::average(std::size_t begin, std::size_t end) {
  const PhaseScope phase(device().memory(), StepPhase::reduction);
  std::vector<Tensor> gradients;
  for (std::size_t i = begin; i < end; ++i) gradients.push_back(gradient(trained()[i]));
  const Flattened flat(device(), std::move(gradients));
  const GradientSum sum{device(), collectives(), config().message_dtype()};
  sum.all_reduce(flat.tensor(), configured_scaling(config(), size()));
  flat.copy_back();
}

void ReplicatedEngine::drop_gradients() {
  for (Buffer& kept : gradients_) kept.reset();
}

bool ReplicatedEngine::overflowed() const {
  bool found = false;
  device().run(FillZero{flag()});
  for (const std::size_t i : trained()) {
    find_overflow_by_extremes(device(), gradient(i), flag());
    found = device().read_scalar(flag(), HostSync::overflow) > 0;
  }
  return found && config().dtype == DType::fp16;
}

std::vector<float> ReplicatedEngine::read_parameter(std::size_t tensor) {
  if (frozen_.has(tensor)) return frozen_.read(tensor);
  std::vector<float> values(static_cast<std::size_t>(numel(tensor)));
  device().read(master(tensor), values);
  return values;
}

void ReplicatedEngine::write_parameter(std::size_t tensor, std::span<const float> values) {
  device().write(values, parameter(tensor));
  if (frozen_.has(tensor)) return;
  if (config().dtype != DType::fp32) device().write(values, master(tensor));
}

PlainEngine::PlainEngine(const EngineContext& context)
    : ReplicatedEngine(context, false), states_(groups().size()) {}

StepResult PlainEngine::step() {
  if (config().gradient_clipping > 0) clip();
  for (std::size_t group = 0; group < groups().size(); ++group) {
    std::vector<UpdatedTensor> tensors;
    for (const std::size_t i : groups()[group].tensors) {
      device().host_event(HostEvent::optimizer_tensor);
      tensors.push_back({gradient(i), parameter(i)});
    }
    states_[group].update(device(), next_update(groups()[group].weight_decay), tensors);
  }
  drop_gradients();
  return finish(false);
}

// Every rank has the same norm; DeepSpeed still averages it over the group.
void PlainEngine::clip() {
  start_norm();
  add_squares_of(collectives(), [&](Tensor sum) {
    for (const std::size_t i : trained()) {
      device().run(MemoryPass::norm, AddSquares{gradient(i), sum});
    }
    device().run(Scale{sum, 1.0 / size()});
  });
  const Tensor factor = clip_factor();
  for (const std::size_t i : trained())
    device().run(MemoryPass::unscale, ScaleBy{gradient(i), factor});
}

FusedEngine::FusedEngine(const EngineContext& context) : ReplicatedEngine(context, true) {
  std::int64_t offset = 0;
  offsets_.resize(tensor_count());
  for (const std::size_t i : trained()) {
    offsets_[i] = offset;
    offset += numel(i);
  }
  master_ = make_buffer(device(), MemoryCategory::optimizer, offset, DType::fp32);
  for (const std::size_t i : trained()) device().run(Cast{parameter(i), master(i)});
  state_.ensure(device(), config().optimizer, offset);
}

Tensor FusedEngine::master(std::size_t tensor) const {
  return master_.tensor(DType::fp32).slice(offsets_[tensor], numel(tensor));
}

StepResult FusedEngine::step() {
  if (overflowed()) {
    drop_gradients();
    return finish(true);
  }
  const Buffer flat = flat_gradients();
  const Tensor gradients = flat.tensor(DType::fp32);
  start_norm();
  device().run(MemoryPass::norm, AddSquares{gradients, squares()});
  device().read_scalar(squares(), HostSync::norm);
  device().run(MemoryPass::unscale, ScaleBy{gradients, clip_factor()});
  state_.update(device(), next_update(groups()[0].weight_decay), gradients,
                master_.tensor(DType::fp32));
  for (const std::size_t i : trained())
    device().run(MemoryPass::master_cast, Cast{master(i), parameter(i)});
  return finish(false);
}

// The list of fp32 copies and their concatenation exist together for a moment: 8 bytes per element,
// while the 16-bit gradients still exist.
Buffer FusedEngine::flat_gradients() {
  std::vector<Buffer> copies(tensor_count());
  for (const std::size_t i : trained()) {
    device().host_event(HostEvent::optimizer_tensor);
    copies[i] = temporary(numel(i), DType::fp32);
    device().run(MemoryPass::master_gradient, Cast{gradient(i), copies[i].tensor(DType::fp32)});
  }
  Buffer flat = temporary(parameters().trainable_total(), DType::fp32);
  for (const std::size_t i : trained()) {
    device().run(
        MemoryPass::master_gradient,
        Copy{copies[i].tensor(DType::fp32), flat.tensor(DType::fp32).slice(offsets_[i], numel(i))});
  }
  copies.clear();
  drop_gradients();
  return flat;
}

}  // namespace dstune
