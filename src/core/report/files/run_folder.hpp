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
/// folder of a run: with --resume or --overwrite the last one of the very file that is given, by
/// record_configuration(); else, and where there is none, a new one, which is not made
/// yet. Changes nothing where the configuration names its results_dir. Input without a file, such
/// as standard input, is known by that alone: --resume goes on with its last run, --overwrite
/// replaces none.
/// @param now  names a new folder: "gpt2-20261128T112233"
/// @throws ConfigError  if --resume finds runs of other files of its name alone, or the results of
///                      an earlier version
void settle_run_folder(TuningConfig& config, const CommandLine& options,
                       std::time_t now = std::time(nullptr));

/// Makes the new folder that settle_run_folder() named, under another name ("...-2") if a run that
/// began in the same second has it, with its record_configuration(). Where a run is gone on with or
/// replaced, or the folder is named, it does nothing. @throws Error
void make_run_folder(TuningConfig& config, const CommandLine& options);

/// Writes into a run's folder, which is there, of which file it is, unless that was written before:
/// the absolute path, in kConfigFileName. Folders with names of the user's choice need none.
/// @throws Error
void record_configuration(const TuningConfig& config);

/// Lets autotuning_results/latest name the run's folder, where the folder lies there; it is
/// replaced at once. What is there and is no link stays, and where no link can be made there is
/// none, with a warning.
void point_latest_at(const AutotuningConfig& config);

/// The results that questions about a configuration are answered from.
struct AskedRun {
  std::string folder;
  bool is_of_another = false;  ///< the last run of all, since this configuration has none
};

/// results_dir, or, where the configuration names none and there was a run, its last run's folder.
AskedRun asked_run(const TuningConfig& config);

/// `directory`, or the last run's folder if that lies in it and no run's status is there.
std::string status_folder(const std::string& directory);

/// What a machine's profile lies in: results_dir, or the folder that has the folders of its runs.
std::string results_root(const AutotuningConfig& config);

}  // namespace dstune
