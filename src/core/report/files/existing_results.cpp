#include "core/report/files/existing_results.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/directory_trial.hpp"
#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/input/problems.hpp"
#include "core/report/files/own_files.hpp"
#include "core/report/files/status_file.hpp"
#include "core/report/journal/journal_file.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/report/tables/summary.hpp"

namespace dstune {

namespace fs = std::filesystem;

namespace {

// The profile that scripts/tune.sh --calibrate leaves for later runs is no result.
constexpr const char* kCalibrationName = "host_overhead.json";

[[noreturn]] void refuse(const std::string& directory, const std::string& what) {
  throw ConfigError(directory, {{"--results-dir", what}});
}

// The entries of a directory; none if there is no such directory.
std::vector<fs::path> entries(const std::string& directory) {
  std::vector<fs::path> paths;
  std::error_code fault;
  if (!fs::exists(directory, fault)) return paths;
  if (!fs::is_directory(directory, fault)) refuse(directory, "is a file, not a directory");
  fs::directory_iterator iterator(directory, fault);
  if (fault) throw_file_error("read directory", directory, fault.value());
  for (const auto& entry : iterator) paths.push_back(entry.path());
  return paths;
}

// True if `path`, which has the name of `directory`, is that folder, with nothing in it.
bool is_empty_folder(const fs::path& path, const std::string& directory) {
  std::error_code fault;
  return fs::symlink_status(path, fault).type() == fs::file_type::directory &&
         fs::equivalent(path, directory, fault) && fs::is_empty(path, fault);
}

/// The files that stand in a results_dir.
struct Found {
  std::vector<fs::path> others;  ///< all but the journal, a profile and a status file of ours
  bool has_journal = false;
  bool is_results =
      false;  ///< of a run: a line of the journal is ours, or a crash left no more of it
};

// A status file and an empty exps_dir alone are what a run leaves behind that ended before its
// journal: no result.
Found look_at(const std::string& results_dir, const std::string& exps_dir) {
  Found found;
  bool has_status = false;
  std::error_code unknown;
  const fs::path exps_name = fs::weakly_canonical(exps_dir, unknown).filename();
  for (const auto& path : entries(results_dir)) {
    const fs::path name = path.filename();
    if (name == kJournalName || name == kCalibrationName || name == kConfigFileName) continue;
    const bool is_status = path.filename() == kStatusName && is_own_status_file(path);
    has_status = has_status || is_status;
    // Of a long run there are thousands, so that few of them are looked into.
    const bool may_be_exps = path.filename() == exps_name;
    if (!is_status && !(may_be_exps && is_empty_folder(path, exps_dir)))
      found.others.push_back(path);
  }
  const std::string journal = concat(results_dir, "/", kJournalName);
  const auto text = read_journal_file(journal);
  found.has_journal = text.has_value();
  if (!text) return found;
  found.is_results = is_own_journal(*text, journal) || has_status || found.others.empty();
  return found;
}

// "a, b, c and 5 more"
std::string list(const std::vector<fs::path>& paths) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  names.reserve(paths.size());
  for (const auto& path : paths) names.push_back(path.filename().string());
  std::sort(names.begin(), names.end());
  const std::size_t rest = names.size() > kMost ? names.size() - kMost : 0;
  names.resize(names.size() - rest);
  return join(names, ", ") + (rest == 0 ? "" : concat(" and ", rest, " more"));
}

// True if removing `directory` would remove `inner` with it.
bool is_or_holds(const fs::path& directory, const fs::path& inner) {
  std::error_code fault;
  const fs::path outer = fs::weakly_canonical(directory, fault);
  const fs::path inside = fs::weakly_canonical(inner, fault);
  const auto mismatch = std::mismatch(outer.begin(), outer.end(), inside.begin(), inside.end());
  return mismatch.first == outer.end();
}

bool is_dangerous_to_empty(const std::string& directory) {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return is_or_holds(directory, fs::current_path()) ||
         (home != nullptr && *home != '\0' && is_or_holds(directory, home));
}

std::vector<fs::path> experiment_files(const std::string& exps_dir) {
  std::vector<fs::path> files;
  for (const auto& path : entries(exps_dir)) {
    if (is_experiment_file(path)) files.push_back(path);
  }
  return files;
}

void remove_file(const fs::path& path) {
  std::error_code fault;
  fs::remove(path, fault);
  if (fault) throw_file_error("remove", path.string(), fault.value());
}

void check_fresh(const std::string& results_dir, const std::string& exps_dir, const Found& found) {
  const std::string advice =
      " is not touched; use --resume to continue it, --overwrite to start over, or another ";
  if (found.is_results) refuse(results_dir, "exists and" + advice + "--results-dir");
  if (!found.others.empty()) {
    refuse(results_dir, concat("holds ", list(found.others),
                               " and no results of a tuning run, so it is not touched; choose "
                               "another --results-dir"));
  }
  if (!experiment_files(exps_dir).empty()) {
    refuse(exps_dir, "(autotuning.exps_dir) holds experiments and" + advice + "exps_dir");
  }
}

void check_results(const std::string& results_dir, const Found& found) {
  if (!found.has_journal && !found.others.empty()) {
    refuse(results_dir,
           concat("has no journal.jsonl, so it holds no results of a tuning run (but ",
                  list(found.others), ") and is not touched; choose another --results-dir"));
  }
  if (found.has_journal && !found.is_results) {
    refuse(results_dir,
           concat("has a journal.jsonl without a line of a tuning run, and ", list(found.others),
                  "; it is not touched, choose another --results-dir"));
  }
  const auto blocked = find_blocked_names(results_dir);
  if (blocked.empty()) return;
  refuse(results_dir, concat("has something that is not a regular file where results would go: ",
                             join(blocked, ", "), "; choose another --results-dir"));
}

// Names the files that stay in both folders, but for the journal.
void say_what_stays(const std::string& results_dir, const std::string& exps_dir) {
  std::vector<fs::path> others;
  for (const auto& path : entries(results_dir)) {
    std::error_code fault;
    const bool is_exps = fs::equivalent(path, exps_dir, fault);
    if (path.filename() != kJournalName && !is_exps) others.push_back(path);
  }
  if (!others.empty()) {
    log_warning(concat(results_dir, " keeps files that belong to no tuning run: ", list(others)));
  }
  const auto experiments = entries(exps_dir);
  if (!experiments.empty()) {
    log_warning(
        concat(exps_dir, " keeps files that belong to no tuning run here: ", list(experiments)));
  }
}

void add_folder(std::vector<Problem>& problems, const char* where, const std::string& path) {
  const std::string reason = why_not_writable(path);
  if (!reason.empty())
    problems.push_back({where, concat("is ", in_quotes(path), ", which ", reason)});
}

}  // namespace

ExistingResults existing_results(const CommandLine& options) {
  if (options.resume || options.force_resume || options.requeued) return ExistingResults::resume;
  return options.overwrite ? ExistingResults::overwrite : ExistingResults::refuse;
}

void check_folders(const TuningConfig& config, const CommandLine& options) {
  std::vector<Problem> problems;
  add_folder(problems, options.results_dir ? "--results-dir" : "/autotuning/results_dir",
             config.autotuning.results_dir);
  if (problems.empty()) {
    add_folder(problems, "/autotuning/exps_dir", config.autotuning.exps_dir);
  }
  if (!problems.empty()) throw ConfigError(config.source, std::move(problems));
}

void check_existing_results(const std::string& results_dir, const std::string& exps_dir,
                            ExistingResults existing) {
  const Found found = look_at(results_dir, exps_dir);
  entries(exps_dir);
  if (existing == ExistingResults::refuse) return check_fresh(results_dir, exps_dir, found);
  check_results(results_dir, found);
  if (existing != ExistingResults::overwrite || !found.has_journal) return;
  if (is_dangerous_to_empty(results_dir)) {
    refuse(
        results_dir,
        "is or contains the working or home directory, so --overwrite does not remove it; choose "
        "another");
  }
  if (is_journal_in_use(concat(results_dir, "/", kJournalName),
                        [&] { return another_run_lives(results_dir); })) {
    refuse(results_dir,
           "is in use by another run of dstune-mpi; wait until it ends, or choose "
           "another");
  }
}

bool holds_results(const std::string& results_dir, const std::string& exps_dir) {
  return look_at(results_dir, exps_dir).is_results;
}

void remove_existing_results(const std::string& results_dir, const std::string& exps_dir) {
  const std::string journal = concat(results_dir, "/", kJournalName);
  if (!fs::exists(journal)) return;
  const JournalFile held(journal, JournalFile::Open::existing, 0,
                         [&] { return another_run_lives(results_dir); });
  const JournalContent content = read_own_journal(held.read(), journal);
  for (const auto& path :
       find_own_files(results_dir, exps_dir, {content.names, content.processes})) {
    remove_file(path);
  }
  std::set<std::string> folders = content.names;
  folders.insert(kProfileName);
  for (const auto& name : folders) {
    const fs::path folder = fs::path(results_dir) / name;
    std::error_code not_empty;
    if (fs::symlink_status(folder, not_empty).type() == fs::file_type::directory) {
      fs::remove(folder, not_empty);
    }
  }
  say_what_stays(results_dir, exps_dir);
}

}  // namespace dstune
