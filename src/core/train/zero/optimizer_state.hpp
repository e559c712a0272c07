// The state that an optimizer keeps for one flat piece of the model, or of a list of tensors.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/device/device.hpp"
#include "core/device/tensor.hpp"
#include "core/experiment/optimizer_config.hpp"

namespace dstune {

/// What the next update needs to know.
struct NextUpdate {
  const OptimizerConfig* optimizer = nullptr;
  double weight_decay = 0;
  std::int64_t step = 1;      ///< 1 for the first update
  double gradient_scale = 1;  ///< Lamb itself divides gradients by it
};

/// The tensors that the optimizer takes for one parameter. Under ZeRO a whole partition is one
/// parameter: Lamb's norms are those of the partition.
struct UpdatedTensor {
  Tensor gradient;   ///< fp32; any dtype for Lamb
  Tensor parameter;  ///< fp32
  Tensor copy = {};  ///< Lamb only: the parameter in the gradient's dtype, or empty
};

/// The state in fp32: state_tensors() tensors for every parameter; category optimizer.
class OptimizerState {
 public:
  /// @param tier  where the state lives. The host's cores make the updates of what lives in its
  ///        memory: Adam's, Lion's and Adagrad's.
  explicit OptimizerState(Tier tier = Tier::device) : tier_(tier) {}

  /// Allocates and initialises the state unless it exists. ZeRO and plain fp32 training do so in
  /// the first update, the 16-bit wrappers of stage 0 at the start.
  void ensure(Device& device, const OptimizerConfig& optimizer, std::int64_t numel);
  bool exists() const { return exists_; }
  /// fp32; those that the optimizer does not have are empty.
  std::array<Tensor, 2> tensors() const;

  /// One update; it allocates the state if needed. torch.optim's temporaries are those of the whole
  /// list (category temporaries).
  /// @param tensors  the same at every call, in the same order
  void update(Device& device, const NextUpdate& next, std::span<const UpdatedTensor> tensors);
  void update(Device& device, const NextUpdate& next, Tensor gradient, Tensor parameter) {
    const UpdatedTensor tensor{gradient, parameter};
    update(device, next, {&tensor, 1});
  }

 private:
  Tier tier_;
  std::array<Buffer, 2> state_;
  bool exists_ = false;
};

/// How many tensors of state DeepSpeed's optimizers for the CPU make.
int state_tensors_on_host(const OptimizerConfig& optimizer);

/// One update on the host's cores of tensors that lie in its memory: Adam's, Lion's or Adagrad's.
/// @param state  as OptimizerState has it
void update_on_host(Device& device, const NextUpdate& next, const UpdatedTensor& tensor,
                    const std::array<Tensor, 2>& state);

}  // namespace dstune
