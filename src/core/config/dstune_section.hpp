// The "dstune" section: the model, and how experiments are run.
#pragma once

#include "core/config/tuning_config.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Fills settings, ranks_per_experiment and worker_timeout of `config` from the section (null: the
/// file has none) and the options, which win; config.source says where relative paths start.
/// False if the model is not known: then its numbers mean nothing.
bool read_dstune(const json::value& section, const CommandLine& options, TuningConfig& config,
                 Problems& problems);

}  // namespace dstune
