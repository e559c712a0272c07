#include "core/train/zero/offload/offloaded_engine.hpp"

#include <algorithm>
#include <cmath>

#include "core/device/operations/optimizers.hpp"

namespace dstune {
namespace {

std::int64_t largest_trained(const ModelParameters& parameters) {
  std::int64_t largest = 0;
  for (const ParameterSpec& tensor : parameters.tensors) {
    if (tensor.trainable) largest = std::max(largest, tensor.numel());
  }
  return largest;
}

}  // namespace

OffloadedEngine::OffloadedEngine(const EngineContext& context)
    : PartitionedEngine(context, Master::elsewhere),
      largest_(largest_trained(parameters())),
      partition_(device(), config(), layouts(), rank(), largest_),
      gradients_(device(), config(), layouts(), rank(), {.largest = largest_, .sums = sums()},
                 partition_) {
  for (std::size_t group = 0; group < layouts().size(); ++group) {
    partition_.initialize_master(group, states().own_partition(group));
  }
}

// Stage 1 reduces in the last micro-step alone, which is the first one that DeepSpeed counts.
void OffloadedEngine::begin_micro_step(bool boundary) {
  PartitionedEngine::begin_micro_step(boundary);
  gradients_.begin_micro_step(++micro_step_, boundary);
}

StepResult OffloadedEngine::step() {
  micro_step_ = -1;
  gradients_.await_copies();
  const bool overflow = overflowed();
  gradients_.forget_overflow();
  drop_kept();
  if (overflow) {
    if (sums() != nullptr) sums()->drop();
    return finish(true);
  }
  const std::optional<double> factor = unscale_factor(squares());
  for (std::size_t group = 0; group < layouts().size(); ++group) {
    partition_.update(group, next_update(groups()[group].weight_decay), factor,
                      states().own_partition(group));
    if (sums() != nullptr) sums()->drop(group);
  }
  states().gather();
  return finish(false);
}

bool OffloadedEngine::overflowed() {
  if (!checks_overflow()) return false;
  return any_overflow(collectives(), [&](Tensor flag) {
    device().write_scalar(gradients_.has_overflow() ? 1 : 0, flag);
  });
}

double OffloadedEngine::squares() {
  start_norm();
  double sum = 0;
  for (std::size_t group = 0; group < layouts().size(); ++group) {
    add_squares_of(collectives(),
                   [&](Tensor part) { device().write_scalar(gradients_.squares(group), part); });
    sum = device().read_scalar(EngineBase::squares(), HostSync::offload_norm);
  }
  return sum;
}

std::optional<double> OffloadedEngine::unscale_factor(double squares) const {
  const double clipping = config().gradient_clipping;
  if (clipping == 0 && loss_scale() == 1) return std::nullopt;
  return dstune::clip_factor(squares, clipping, loss_scale());
}

std::vector<float> OffloadedEngine::read_parameter(std::size_t tensor) {
  if (!is_trainable(tensor)) return states().frozen().read(tensor);
  return collect(numel(tensor), [&](Tensor all) { partition_.read_own(tensor, all); });
}

void OffloadedEngine::write_parameter(std::size_t tensor, std::span<const float> values) {
  device().write(values, parameter(tensor));
  if (!is_trainable(tensor)) return;
  const Buffer all = temporary(numel(tensor), DType::fp32);
  device().write(values, all.tensor(DType::fp32));
  partition_.write_own(tensor, all.tensor(DType::fp32));
}

}  // namespace dstune
