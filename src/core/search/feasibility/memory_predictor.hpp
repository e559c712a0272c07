// What the tuner knows about memory before anything runs.
#pragma once

#include <functional>

#include "core/device/device.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome.hpp"

namespace dstune {

/// What `experiment` needs on `rank` of its group: Measured (peak_memory counts, times do not),
/// OutOfMemory or Skipped. Local and fast. Tests give their own.
using MemoryPredictor = std::function<Outcome(const Experiment& experiment, int rank)>;

/// The dry run of the real step's code.
/// @param imitated  the device whose scratch is counted, which must outlive the predictor; none: a
///                  GPU with fused kernels
MemoryPredictor make_memory_predictor(const Device* imitated = nullptr);

}  // namespace dstune
