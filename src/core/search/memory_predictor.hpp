// What the tuner knows about memory before anything runs.
#pragma once

#include <functional>

#include "core/base/units.hpp"
#include "core/train/device.hpp"
#include "core/train/experiment.hpp"
#include "core/train/outcome.hpp"

namespace dstune {

/// Both functions are local and fast. Tests give their own.
struct MemoryPredictor {
  /// Measured (peak_memory counts, times do not) or Skipped; rank is one of the group.
  std::function<Outcome(const Experiment& experiment, int rank)> dry_run;
  /// Peak bytes of activations and temporaries within forward and backward of one micro-step.
  std::function<Bytes(const Experiment& experiment)> activations;
};

/// The dry run of the real step's code, and the model's formula.
/// @param imitated  the device whose scratch is counted, which must outlive the predictor; none: a
///                  GPU with fused kernels
MemoryPredictor make_memory_predictor(const Device* imitated = nullptr);

}  // namespace dstune
