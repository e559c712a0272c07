// The optimizer that a configuration asks for, its settings, and the state that it keeps per
// parameter.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/device/dtype.hpp"

namespace dstune {

/// DeepSpeed's FusedAdam, or torch.optim's Adam and AdamW.
struct AdamSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool adam_w = true;  ///< weight decay is decoupled from the gradient
  bool bias_correction = true;
  bool torch = false;  ///< torch_adam: torch.optim's class, which a client optimizer is too

  bool operator==(const AdamSettings&) const = default;
};

/// torch.optim.SGD.
struct SgdSettings {
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;

  bool operator==(const SgdSettings&) const = default;
};

/// DeepSpeed's FusedLion.
struct LionSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;

  bool operator==(const LionSettings&) const = default;
};

/// torch.optim.Adagrad.
struct AdagradSettings {
  double epsilon = 1e-10;
  double lr_decay = 0;
  double initial_accumulator = 0;

  bool operator==(const AdagradSettings&) const = default;
};

/// DeepSpeed's FusedLamb.
struct LambSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool epsilon_inside_root = false;
  bool bias_correction = true;
  double max_ratio = 10;  ///< bounds of |parameter| / |update|
  double min_ratio = 0.01;

  bool operator==(const LambSettings&) const = default;
};

using OptimizerSettings =
    std::variant<AdamSettings, SgdSettings, LionSettings, AdagradSettings, LambSettings>;

struct OptimizerConfig {
  bool client = true;  ///< no "optimizer" section: HF Trainer's AdamW with two parameter groups
  double lr = 1e-3;
  double weight_decay = 0;
  OptimizerSettings settings;

  bool operator==(const OptimizerConfig&) const = default;
};

template <class Settings>
bool is(const OptimizerConfig& optimizer) {
  return std::holds_alternative<Settings>(optimizer.settings);
}

/// Whether a 16-bit step without ZeRO keeps flat buffers, as it does for DeepSpeed's own Adam; for
/// every other optimizer it goes tensor by tensor (docs/deepspeed-step.md, "Which optimizer class
/// runs").
bool uses_fused_wrapper(const OptimizerConfig& optimizer);

/// The number of fp32 tensors that are kept per parameter: 2 for Adam and Lamb, 1 for Lion, Adagrad
/// and SGD with momentum, 0 for plain SGD.
int state_tensors(const OptimizerConfig& optimizer);

/// The number of temporary fp32 tensors that an update holds for each parameter of all that are
/// updated together: torch.optim's Adagrad and SGD work on whole lists
/// (docs/decisions/optimizers.md). Adam's temporaries are not modelled.
int scratch_tensors(const OptimizerConfig& optimizer, double weight_decay);

/// Whether a second, unused state stays in memory: torch's Adagrad makes its state for the model's
/// parameters, in their dtype, before a wrapper or ZeRO 1 and 2 make it anew for the fp32 ones; the
/// engine keeps both (docs/decisions/optimizers.md).
bool leaves_unused_state(const OptimizerConfig& optimizer, int stage, DType dtype);

/// The "optimizer" section of a checked DeepSpeed JSON. A setting that cannot be modelled, or that
/// DeepSpeed refuses together with the rest of the file, goes to `unsupported`.
/// @throws std::invalid_argument  if the JSON was not checked
OptimizerConfig read_optimizer_config(const json::object& ds_config,
                                      std::vector<std::string>& unsupported);

}  // namespace dstune
