#include "core/train/zero/offload/device_sub_group.hpp"

#include <variant>

#include "core/device/operations/elementwise.hpp"

namespace dstune {
namespace {

OptimizerConfig as_torch_has_it(const OptimizerConfig& optimizer) {
  OptimizerConfig own = optimizer;
  auto& adam = std::get<AdamSettings>(own.settings);
  adam.torch = true;
  adam.adam_w = true;
  adam.bias_correction = true;
  return own;
}

}  // namespace

DeviceSubGroup::DeviceSubGroup(Device& device, const StepConfig& config,
                               const PlacedTensor& parameters)
    : device_(device),
      optimizer_(as_torch_has_it(config.optimizer)),
      master_(
          make_buffer(device, MemoryCategory::optimizer, parameters.tensor.numel, DType::fp32)) {
  copy_weights(device, parameters, {master()});
}

void DeviceSubGroup::begin_gradients(Tensor zeros, Tier tier) {
  gradients_ = make_buffer(device_, MemoryCategory::gradients, zeros.numel, DType::fp32);
  gradients_.used_on(Stream::reduction);
  device_.transfer(
      {zeros, gradients(), Transfer::host_to_device, TransferPurpose::gradient, tier, true});
}

void DeviceSubGroup::update(const NextUpdate& next, double factor, const PlacedTensor& parameters) {
  device_.run(MemoryPass::unscale, Scale{gradients(), factor});
  if (!step_) {
    step_ = make_buffer(device_, MemoryCategory::optimizer, 1, DType::fp32, Tier::pageable);
  }
  const NextUpdate own{&optimizer_, next.weight_decay, next.step, next.gradient_scale};
  state_.update(device_, own, gradients(), master());
  run_other_passes(next);
  copy_weights(device_, {master()}, parameters);
}

// torch's "foreach" form reads and writes memory in each of its steps. The update above has the
// traffic of two of them; these are the decay of the second moment, what is added to it, and the
// root, which is a temporary, divided and added to; and the decay of the weights.
void DeviceSubGroup::run_other_passes(const NextUpdate& next) const {
  const Buffer roots =
      make_buffer(device_, MemoryCategory::temporaries, gradients().numel, DType::fp32);
  const Tensor temporary = roots.tensor(DType::fp32);
  device_.run(MemoryPass::update, Copy{gradients(), temporary});
  device_.run(MemoryPass::update, Add{temporary, gradients()});
  const int scalings = next.weight_decay == 0 ? 3 : 4;
  for (int i = 0; i < scalings; ++i) device_.run(MemoryPass::update, Scale{temporary, 0.5});
}

}  // namespace dstune
