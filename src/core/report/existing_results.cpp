#include "core/report/existing_results.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace fs = std::filesystem;

namespace {

constexpr const char* kJournal = "journal.jsonl";
constexpr const char* kStatus = "status.json";

[[noreturn]] void refuse(const std::string& directory, const std::string& what) {
  throw ConfigError(directory, {{"--results-dir", what}});
}

// Entries of a directory; none if there is no such directory.
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

// A status file alone is what a run with wrong input leaves behind: no result.
bool has_content(const std::vector<fs::path>& paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [](const fs::path& path) { return path.filename() != kStatus; });
}

bool looks_like_results(const std::string& directory) {
  for (const char* name :
       {kJournal, "summary.txt", "ds_config_optimal.json", "profile_model_info"}) {
    std::error_code ignored;
    if (fs::exists(fs::path(directory) / name, ignored)) return true;
  }
  return false;
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

// A file of DeepSpeed's or ours that describes an experiment.
bool is_experiment_file(const fs::path& path) {
  constexpr Bytes kLongest = Bytes{16} << 20U;
  std::error_code fault;
  if (path.extension() != ".json" || !fs::is_regular_file(path, fault)) return false;
  try {
    const json::value value = parse_json(read_text_file(path.string(), kLongest));
    const auto* object = value.if_object();
    return object != nullptr && object->contains("name") && object->contains("ds_config");
  } catch (const std::exception&) {
    return false;  // unreadable or no JSON: not ours
  }
}

std::vector<fs::path> experiment_files(const std::string& exps_dir) {
  std::vector<fs::path> files;
  for (const auto& path : entries(exps_dir)) {
    if (is_experiment_file(path)) files.push_back(path);
  }
  return files;
}

void remove_entry(const fs::path& path) {
  std::error_code fault;
  fs::remove_all(path, fault);
  if (fault) throw_file_error("remove", path.string(), fault.value());
}

}  // namespace

void check_existing_results(const std::string& results_dir, const std::string& exps_dir,
                            ExistingResults existing) {
  const bool has_results = has_content(entries(results_dir));
  const bool has_experiments = !experiment_files(exps_dir).empty();
  if (existing == ExistingResults::refuse) {
    const std::string advice =
        " is not touched; use --resume to go on with it, --overwrite to start again, or another ";
    if (has_results) refuse(results_dir, "exists and" + advice + "--results-dir");
    if (has_experiments) {
      refuse(exps_dir, "(autotuning.exps_dir) holds experiments and" + advice + "exps_dir");
    }
  }
  if (!has_results) return;
  const std::string journal = concat(results_dir, "/", kJournal);
  if (existing == ExistingResults::resume && !fs::exists(journal)) {
    refuse(results_dir,
           "has no journal.jsonl, so there is nothing to resume; choose another --results-dir");
  }
  if (existing != ExistingResults::overwrite) return;
  if (!looks_like_results(results_dir)) {
    refuse(results_dir,
           "holds no results of a tuning run, so --overwrite does not remove it; choose another");
  }
  if (is_dangerous_to_empty(results_dir)) {
    refuse(results_dir,
           "is or holds the working or home directory, so --overwrite does not remove it; choose "
           "another");
  }
  if (is_journal_in_use(journal)) {
    refuse(results_dir,
           "is in use by another run of dstune-mpi; wait for its end, or choose "
           "another");
  }
}

void remove_existing_results(const std::string& results_dir, const std::string& exps_dir) {
  for (const auto& path : entries(results_dir)) {
    if (path.filename() != kJournal) remove_entry(path);
  }
  remove_entry(fs::path(results_dir) / kJournal);
  for (const auto& path : experiment_files(exps_dir)) remove_entry(path);
}

}  // namespace dstune
