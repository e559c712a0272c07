// ZeRO: which rank owns which shard, and when shards are gathered, reduced and stepped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/device/tensor.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/module_hooks.hpp"

namespace dstune {

/// The result of step().
struct StepResult {
  bool overflow = false;  ///< inf or NaN in the gradients: the update was skipped
  double loss_scale = 1;  ///< the scale that the next forward must use
};

/// The hooks of a model, and the step around them. This is one optimizer step:
///
///     for each micro-step: begin_micro_step → forward {fetch module, use, release} →
///                          backward {fetch, use, release; gradient_ready per tensor} →
///                          end_backward
///     step
class ZeroEngine : public ModuleHooks {
 public:
  /// @param boundary  true: this is the last micro-step of the accumulation window
  virtual void begin_micro_step(bool boundary) = 0;

  /// Called after the last gradient_ready of a micro-step: flushes the gradients that wait in
  /// buckets.
  virtual void end_backward() = 0;

  /// Called after the boundary micro-step: overflow check, norm, clipping, update, gather.
  virtual StepResult step() = 0;

  /// The factor that forward's loss must be multiplied by before backward (1 without fp16).
  virtual double loss_scale() const = 0;

  /// The global norm of the last step's unscaled gradients before clipping; 0 if it was not
  /// computed. It is read from the device, and so must not be asked for within a step.
  virtual double grad_norm() = 0;

  /// Collective, slow, for initialisation and tests: the tensor's values (fp32 master where there
  /// is one) by registration index, on every rank.
  virtual std::vector<float> read_parameter(std::size_t tensor) = 0;
  /// Overwrites model and master values. Local: every rank must give the same values.
  virtual void write_parameter(std::size_t tensor, std::span<const float> values) = 0;
};

/// Allocates the model states of config.stage and fills the parameters from `seed`, with the same
/// values for every stage and group size. `parameters` must outlive the engine.
/// @throws OutOfMemoryError  if they do not fit
std::unique_ptr<ZeroEngine> make_zero_engine(const StepConfig& config,
                                             const ModelParameters& parameters, Device& device,
                                             Collectives& collectives, std::uint64_t seed);

}  // namespace dstune
