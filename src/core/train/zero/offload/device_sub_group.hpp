// Stage 3: a sub-group that an offloaded optimizer leaves on the device.
#pragma once

#include <cstdint>

#include "core/device/device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/zero/layout/placed_tensor.hpp"
#include "core/train/zero/optimizer_state.hpp"

namespace dstune {

/// One of the first sub-groups of an offload_optimizer.ratio below 1: fp32 master, fp32 gradients
/// and the optimizer's state on the device, 4 bytes per element each, 8 of Adam's state.
/// torch.optim.AdamW steps it, whatever kind of Adam the host runs: with decoupled weight decay and
/// with bias correction; it keeps the number of the step on the host.
class DeviceSubGroup {
 public:
  /// @param parameters  its shards, on the device or on the host, in the model dtype: the first
  ///        values
  DeviceSubGroup(Device& device, const StepConfig& config, const PlacedTensor& parameters);

  /// Copies the zeros that DeepSpeed makes on the host to where the gradients will be.
  /// @param zeros  fp32, in memory of `tier`
  void begin_gradients(Tensor zeros, Tier tier);

  Tensor master() const { return master_.tensor(DType::fp32); }
  Tensor gradients() const { return gradients_.tensor(DType::fp32); }
  /// One update, whose new values are in `parameters` afterwards. Where those are on the host they
  /// come down in fp32, and the host converts them.
  /// @param factor  the gradients are multiplied by it first
  void update(const NextUpdate& next, double factor, const PlacedTensor& parameters);

 private:
  void run_other_passes(const NextUpdate& next) const;

  Device& device_;
  OptimizerConfig optimizer_;  // as torch has it
  Buffer master_;
  Buffer gradients_;
  Buffer step_;
  OptimizerState state_;
};

}  // namespace dstune
