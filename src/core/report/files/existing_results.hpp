// The treatment of a results_dir that is already there.
#pragma once

#include <string>

#include "core/config/command_line/command_line.hpp"
#include "core/config/tuning_config.hpp"
#include "core/report/files/results_directory.hpp"

namespace dstune {

/// What the command line wants done with results that are there already.
ExistingResults existing_results(const CommandLine& options);

/// @throws ConfigError  if results_dir or exps_dir could not be written to
void check_folders(const TuningConfig& config, const CommandLine& options);

/// Changes nothing. A results_dir is one with a journal.jsonl of ours.
/// @throws ConfigError  if a run with `existing` must not use these directories
void check_existing_results(const std::string& results_dir, const std::string& exps_dir,
                            ExistingResults existing);

/// Whether results_dir has what a run left there. @throws ConfigError  if it cannot be told
bool holds_results(const std::string& results_dir, const std::string& exps_dir);

/// Removes what the journal's runs wrote (find_own_files()) from both directories and says what
/// stays. Only after check_existing_results(..., overwrite). The journal stays, for Journal::Mode::
/// replace: whenever this is interrupted, the rest can still be told from other people's files.
/// @throws ConfigError  if another run began meanwhile; Error
void remove_existing_results(const std::string& results_dir, const std::string& exps_dir);

}  // namespace dstune
