// An experiment without a step: what a group's machine can do for a model.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/group.hpp"
#include "core/device/rates/machine_rates.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune {

/// The shapes of the products of every matrix of `model` with `rows` activations, forward and
/// backward, each shape once.
std::vector<MatrixShape> product_shapes(const ModelParameters& model, std::int64_t rows);

/// Makes `machine`, an experiment that measures one, time these messages too, besides those of the
/// whole group in the model's type: they become part of its ds_config.
void ask_for(Experiment& machine, const std::vector<GroupMessage>& messages);

/// Makes `machine` time copies to and from the host's memory and the host's passes too
/// (measure_host_rates.hpp): it becomes part of its ds_config.
void ask_for_host(Experiment& machine);
bool asks_for_host(const Experiment& machine);

/// Collective over the group. The outcome is Measured with machine_rates alone, each the slowest
/// rank's, or OutOfMemory if not even messages fit; of a preflight that of check_machine().
/// @returns the merged outcome on group rank 0; this rank's own view elsewhere
/// @throws ExperimentAborted  if the dispatcher says so
Outcome measure_machine(const Experiment& experiment, Device& device, Collectives& collectives,
                        Group& group);

}  // namespace dstune
