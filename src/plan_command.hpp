// --plan: what would be explored, without mpirun.
#pragma once

#include <memory>
#include <vector>

#include "core/config/command_line.hpp"
#include "core/config/tuning_config.hpp"
#include "core/search/stage_plan.hpp"
#include "core/train/device.hpp"
#include "core/train/experiment.hpp"

namespace dstune {

struct Plan {
  TuningConfig config;
  int group_size = 1;
  std::unique_ptr<Device> device;  ///< only asked what it would need
  std::vector<StagePlan> stages;
  std::vector<Experiment> experiments;
};

/// @throws ConfigError
Plan make_plan(const CommandLine& options);

/// Prints it, as a table or as JSON. @throws ConfigError
void print_plan(const CommandLine& options);

}  // namespace dstune
