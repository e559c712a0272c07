// What would be explored, without mpirun.
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
  TuningConfig config;  ///< as it would run on `machine`
  Machine machine;
  std::unique_ptr<Backend> backend;
  const Device* device =
      nullptr;  ///< of `backend`, only asked what it would need; as LocalBackends::make_to_ask
  std::vector<StagePlan> stages;
  std::optional<Pool> pool;             ///< of tuners that choose from one
  std::vector<Experiment> experiments;  ///< its, or those of fast mode
};

/// The input, read: stages and experiments are still missing.
/// @throws ConfigError  with every fault of the files
Plan begin_plan(const CommandLine& options, const LocalBackends& backends);

/// Adds the stages. @throws ConfigError  if there are none for another reason than memory
void add_stages(Plan& plan);

/// What to know before a plan is trusted.
void log_warnings(const Plan& plan);

/// All of it, with its warnings in the log. @throws ConfigError
Plan make_plan(const CommandLine& options, const LocalBackends& backends);

/// Whether anything fits in memory.
bool fits(const Plan& plan);

}  // namespace dstune
