// The experiments that a run would explore, found without mpirun.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/config/command_line/command_line.hpp"
#include "core/config/tuning_config.hpp"
#include "core/device/backend.hpp"
#include "core/experiment/experiment.hpp"
#include "core/search/feasibility/machine.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

struct Plan {
  TuningConfig config;  ///< the configuration as it would run on `machine`
  Machine machine;
  std::unique_ptr<Backend> backend;
  /// The device of `backend`, which is only asked what it would need; see
  /// LocalBackends::make_to_ask.
  const Device* device = nullptr;
  std::vector<StagePlan> stages;
  std::optional<Pool> pool;             ///< for tuners that choose from a pool
  std::vector<Experiment> experiments;  ///< those of the pool, or those of fast mode
};

/// Reads the input into a plan that still lacks stages and experiments.
/// @throws ConfigError  with every fault of the files
Plan begin_plan(const CommandLine& options, const LocalBackends& backends);

/// Adds the stages to the plan. @throws ConfigError  if none can run, for another reason than
/// memory
void add_stages(Plan& plan);

/// Logs the warnings to read before a plan is trusted.
void log_warnings(const Plan& plan);

/// Makes the complete plan and logs its warnings. @throws ConfigError
Plan make_plan(const CommandLine& options, const LocalBackends& backends);

/// Whether anything fits in memory.
bool fits(const Plan& plan);

/// What is too small for the stages and configurations that do not fit.
Stores full_stores(const Plan& plan);

}  // namespace dstune
