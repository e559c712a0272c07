// What memory_model.hpp predicts for a tiny experiment, to hold runs to.
#pragma once

#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::test {

/// The peak of every category by formula: model states, activations and tokens. `device`: whose
/// attention needs scratch; none for a dry run.
MemoryUse predict_peak(const Experiment& experiment, int rank, const Device* device);

/// Every category; `what` is for the failure message.
void expect_equal(const MemoryUse& measured, const MemoryUse& predicted, const std::string& what);

/// zero_optimization of stage 3 with limits between the sizes of tensors (6 to 174), layers (354)
/// and the model (910).
std::vector<json::object> stage3_knobs();

/// Whether groups of ranks (hpZ, MiCS) can be as large as the experiment asks for.
bool shard_sizes_divide(const TinyExperiment& tiny);

}  // namespace dstune::test
