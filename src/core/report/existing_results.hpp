// What may be done with a results_dir that is already there.
#pragma once

#include <string>

#include "core/report/results_directory.hpp"

namespace dstune {

/// Changes nothing. @throws ConfigError  if a run with `existing` must not use these directories
void check_existing_results(const std::string& results_dir, const std::string& exps_dir,
                            ExistingResults existing);

/// Empties results_dir, and removes the experiments' files from exps_dir. Only after
/// check_existing_results(..., overwrite). The journal goes last: after a crash the rest still
/// looks like results. @throws Error
void remove_existing_results(const std::string& results_dir, const std::string& exps_dir);

}  // namespace dstune
