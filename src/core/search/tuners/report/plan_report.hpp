// What --plan prints: memory per stage, the experiments, and the funnel of the spaces, as text or
// as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/experiment/experiment.hpp"
#include "core/search/feasibility/machine.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/predict/foretold.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// The text of --plan: model and limits, a table of the stages (the peak of each category at
/// micro-batch 1, each at its own moment), and a table of the experiments.
/// @param config  complete for `machine`
/// @param pool  the pool whose funnel follows; null: there are no search spaces
/// @param foretold  of the first experiments, or of all; null: there are no step times
std::string format_plan_table(const TuningConfig& config, const Machine& machine,
                              const std::vector<StagePlan>& stages,
                              const std::vector<Experiment>& experiments,
                              const Pool* pool = nullptr, const Foretold* foretold = nullptr);

/// {"num_params", "trainable_num_params", "world_size", "memory_limit_bytes" and, where it is not
/// the user's, "memory_limit_origin", if it is known, "memory_beside_plan_bytes", "stages":
/// [{"stage", "memory_bytes_per_rank", "activation_bytes_per_micro_batch", "feasible",
/// "max_micro_batch", "peak_memory_bytes", "peak_active_bytes", "peak_reserved_bytes";
/// "peak_host_memory_bytes", "fits_on_host" where something is offloaded, with "shortages":
/// [{"tier", "needed_bytes", "limit_bytes"}] if it does not fit;
/// "unsupported" where it is}], "experiments": [{"name", "ds_config"; "predicted_step_time_s",
/// "predicted_interval_90_s": [low, high] where they are foretold}]}, indented, with a line end.
/// @param pool  the pool for add_funnel(); null: there are no search spaces
std::string format_plan_json(const TuningConfig& config, const Machine& machine,
                             const std::vector<StagePlan>& stages,
                             const std::vector<Experiment>& experiments, const Pool* pool = nullptr,
                             const Foretold* foretold = nullptr);

/// The experiments that format_plan_table() shows: all, or the first of a pool, which may be huge.
std::vector<Experiment> shown_experiments(const std::vector<Experiment>& experiments,
                                          const Pool* pool);

}  // namespace dstune
