// Which files of results_dir and exps_dir a run wrote, and which are somebody else's.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/report/journal/run_process.hpp"

namespace dstune {

constexpr const char* kJournalName = "journal.jsonl";
constexpr const char* kStatusName = "status.json";
/// Of a run's folder: which configuration it is of.
constexpr const char* kConfigFileName = "config_file.txt";

/// The runs that are known, from their journal, to have written into a results_dir.
struct Runs {
  std::set<std::string> names;  ///< of experiments
  std::vector<RunProcess> processes;
};

/// Files that `runs` wrote, and that are there: the fixed names of results_dir but the journal,
/// backups of it, the files of each experiment in its folder, exps_dir/NAME.json, and what a kill
/// left of writing one of them ("NAME.<process id>.tmp"). No symbolic links, no folders, and
/// nothing that is reached through one that is a link.
std::vector<std::filesystem::path> find_own_files(const std::string& results_dir,
                                                  const std::string& exps_dir, const Runs& runs);

/// The unfinished ones among these files.
std::vector<std::filesystem::path> find_unfinished_files(const std::string& results_dir,
                                                         const std::string& exps_dir,
                                                         const Runs& runs);

/// True if `path` is an experiment's JSON file as runs write it, exp.json or exps_dir/NAME.json;
/// DeepSpeed's own lack our section.
bool is_own_experiment_file(const std::filesystem::path& path);

/// The same, of DeepSpeed's or ours.
bool is_experiment_file(const std::filesystem::path& path);

/// True if `path` is a status.json as runs write it.
bool is_own_status_file(const std::filesystem::path& path);

/// Fixed names of results_dir that are taken by something that is no plain file.
std::vector<std::string> find_blocked_names(const std::string& results_dir);

}  // namespace dstune
