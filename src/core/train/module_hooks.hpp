// What a model's modules ask of the owner of the parameters.
#pragma once

#include <cstddef>
#include <memory>

#include "core/device/tensor.hpp"

namespace dstune {

/// The hooks around modules and gradients, as DeepSpeed registers them. Modules and tensors are
/// indices into ModelParameters; all calls happen in the same order on every rank.
class ModuleHooks {
 public:
  virtual ~ModuleHooks() = default;

  /// Called before a module's forward, the one that a checkpoint runs again, too: its parameters
  /// become readable on every rank.
  virtual void fetch(std::size_t module) = 0;
  /// Called after it. Outside of fetch and release the parameters must not be read.
  virtual void release(std::size_t module) = 0;
  /// The same around a module's backward.
  virtual void fetch_for_backward(std::size_t module) { fetch(module); }
  virtual void release_after_backward(std::size_t module) { release(module); }
  /// The full tensor, in the model dtype; valid between fetch and release of a module that has it.
  virtual Tensor parameter(std::size_t tensor) const = 0;
  /// The memory of the full tensor, which whoever holds it keeps after the release; none where the
  /// tensor is there all the time anyway.
  virtual std::shared_ptr<const Buffer> memory_of(std::size_t /*tensor*/) const { return nullptr; }
  /// False: the tensor is frozen (requires_grad is false), and its gradient need not be computed.
  virtual bool is_trainable(std::size_t tensor) const = 0;
  /// Says that the gradient of `tensor` for this micro-step is final (times the loss scale, divided
  /// by the accumulation steps). Called once per tensor and micro-step, in the order of backward,
  /// tied tensors last; the gradient of a frozen tensor is dropped. `gradient` has the tensor's
  /// numel in the model dtype, category gradients.
  virtual void gradient_ready(std::size_t tensor, Buffer gradient) = 0;
};

}  // namespace dstune
