// An experiment without a step: whether each rank and each pair of ranks of a group is as fast as
// the others, and whether what they send arrives right.
#pragma once

#include "core/device/collectives.hpp"
#include "core/device/group.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// Makes `machine`, an experiment that measures one, a preflight on workers that `where` names: it
/// becomes part of its ds_config, so that the journal answers for the same workers alone.
void make_preflight(Experiment& machine, const std::vector<std::string>& where);
bool is_preflight(const Experiment& experiment);

/// Collective over the group; takes about half a second. Every rank times a matrix product, a copy
/// and the spread of a fixed piece of work, all ranks side by side as in a training; every pair of
/// a round a message each way, the pairs of a round side by side; and the group a sum. Known values
/// must arrive as they were sent, and sums must be right.
/// @returns Measured with machine_check alone, Failed (wrong_sums) with the names of the ranks, or
///          Skipped for want of memory, on group rank 0; this rank's own view elsewhere
/// @throws ExperimentAborted  if the dispatcher says so
Outcome check_machine(const Experiment& experiment, Device& device, Collectives& collectives,
                      Group& group);

}  // namespace dstune
