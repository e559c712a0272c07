// The folder of each run in autotuning_results, where neither the file nor the command line names
// a results_dir.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "core/config/command_line/command_line.hpp"
#include "core/config/tuning_config.hpp"

namespace dstune {

/// The link in autotuning_results to the folder of the run that was begun last.
inline constexpr const char* kLatestName = "latest";

/// The begin of the folders' names of a configuration's runs: "gpt2-" of "examples/gpt2.json".
/// Characters that are unhandy in a shell become "_".
std::string run_prefix(const std::string& source);

/// Folders of runs in `root`, by their names, which have the prefix: the oldest first.
std::vector<std::string> run_folders(const std::string& root, const std::string& prefix = "");

/// Sets results_dir of a configuration that does not name one, and exps_dir in it likewise, to the
/// folder of a run: with --resume the one that was begun last, with --overwrite the last of this
/// configuration, else, or where there is none, a new one, which is not made yet. Changes nothing
/// where the configuration names its results_dir.
/// @param now  names a new folder: "gpt2-20261128T112233"
/// @throws ConfigError  if --resume finds the run of another configuration, with the runs there are
void settle_run_folder(TuningConfig& config, const CommandLine& options,
                       std::time_t now = std::time(nullptr));

/// Makes the new folder that settle_run_folder() named, under another name ("...-2") if a run that
/// began in the same second has it. Nothing else does anything. @throws Error
void make_run_folder(AutotuningConfig& config, const CommandLine& options);

/// Lets autotuning_results/latest name the run's folder, where the folder lies there; it is
/// replaced at once. What is there and is no link stays, with a warning. @throws Error
void point_latest_at(const AutotuningConfig& config);

/// results_dir, or the last run's folder where the configuration names no results_dir and there was
/// a run.
std::string last_results_dir(const AutotuningConfig& config);

/// `directory`, or the last run's folder if that lies in it and no run's status is there.
std::string status_folder(const std::string& directory);

/// What a machine's profile lies in: results_dir, or the folder that has the folders of its runs.
std::string results_root(const AutotuningConfig& config);

}  // namespace dstune
