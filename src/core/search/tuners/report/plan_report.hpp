// What --plan prints: memory per stage and the experiments, as text or as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/experiment/experiment.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// Model and limits, a table of the stages (peaks per category at micro-batch 1, each at its own
/// moment), and a table of the experiments.
/// @param pool  the funnel of the search spaces follows; null: there are none
std::string format_plan_table(const TuningConfig& config, int group_size,
                              const std::vector<StagePlan>& stages,
                              const std::vector<Experiment>& experiments,
                              const Pool* pool = nullptr);

/// {"num_params", "trainable_num_params", "world_size", "stages": [{"stage",
/// "memory_bytes_per_rank", "activation_bytes_per_micro_batch", "feasible", "max_micro_batch",
/// "peak_memory_bytes"; "unsupported" where it is}], "experiments": [{"name", "ds_config"}]},
/// indented, with a line end.
/// @param pool  add_funnel() follows; null: there are no search spaces
std::string format_plan_json(const TuningConfig& config, int group_size,
                             const std::vector<StagePlan>& stages,
                             const std::vector<Experiment>& experiments,
                             const Pool* pool = nullptr);

}  // namespace dstune
