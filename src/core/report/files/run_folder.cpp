#include "core/report/files/run_folder.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include <unistd.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/input/problems.hpp"
#include "core/report/files/own_files.hpp"

namespace dstune {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTimeForm = "00000000T000000";

std::string utc_stamp(std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%S", &parts);
  return text.data();
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

bool are_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// What stands before the time in a run's name, with its dash; none if it is no run's name.
std::optional<std::string> prefix_of(const std::string& name) {
  std::string_view stem = name;
  const auto is_stamp = [](std::string_view text) {
    return text.size() == kTimeForm.size() && text[8] == 'T' && are_digits(text.substr(0, 8)) &&
           are_digits(text.substr(9));
  };
  const auto last_part = [&] {
    const auto dash = stem.rfind('-');
    return dash == std::string_view::npos ? std::string_view() : stem.substr(dash + 1);
  };
  if (!is_stamp(last_part())) {  // "...-2": the second run of that second
    if (!are_digits(last_part())) return std::nullopt;
    stem.remove_suffix(last_part().size() + 1);
    if (!is_stamp(last_part())) return std::nullopt;
  }
  return std::string(stem.substr(0, stem.size() - kTimeForm.size()));
}

/// The name of the folder that the link names; "" if there is no such link, or no such folder.
std::string latest_in(const std::string& root) {
  std::error_code fault;
  const fs::path target = fs::read_symlink(fs::path(root) / kLatestName, fault);
  if (fault || !fs::is_directory(fs::path(root) / target, fault)) return "";
  return target.lexically_normal().filename().string();
}

void use_folder(AutotuningConfig& config, const std::string& folder) {
  config.results_dir = folder;
  if (!config.has_own_exps_dir) config.exps_dir = folder + "/exps";
}

bool has_journal(const std::string& folder) {
  std::error_code fault;
  return fs::exists(concat(folder, "/", kJournalName), fault);
}

// "a, b and 3 more", the newest first.
std::string list(std::vector<std::string> names, const std::string& root) {
  constexpr std::size_t kMost = 6;
  std::reverse(names.begin(), names.end());
  const std::size_t rest = names.size() > kMost ? names.size() - kMost : 0;
  names.resize(names.size() - rest);
  for (auto& name : names) name = concat(root, "/", name);
  return concat(join(names, ", "), rest == 0 ? "" : concat(" and ", rest, " more"));
}

/// The name of the run that --resume means; "" if there is none.
std::string run_to_resume(const TuningConfig& config) {
  const std::string& root = config.autotuning.results_dir;
  const std::string latest = latest_in(root);
  if (latest.empty()) {
    if (!has_journal(root)) return "";
    throw ConfigError(config.source,
                      {{"--resume", concat("finds no run's folder in ", root,
                                           ", but the results of an earlier version; accepted: "
                                           "--results-dir ",
                                           root, " to go on with them")}});
  }
  if (prefix_of(latest) == run_prefix(config.source)) return latest;
  throw ConfigError(
      config.source,
      {{"--resume", concat("finds that the last run, ", root, "/", latest,
                           ", is of another configuration; accepted: --results-dir with one of ",
                           list(run_folders(root), root))}});
}

}  // namespace

std::string run_prefix(const std::string& source) {
  std::string stem = source == "-" ? "stdin" : fs::path(source).stem().string();
  for (char& letter : stem) {
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    const bool is_plain = is_letter || is_digit(letter) || letter == '.' || letter == '-';
    if (!is_plain) letter = '_';
  }
  if (stem.empty() || stem.front() == '.' || stem.front() == '-') stem.insert(0, "_");
  return concat(stem, '-');
}

std::vector<std::string> run_folders(const std::string& root, const std::string& prefix) {
  std::vector<std::pair<std::string, std::string>> found;  // by their time
  std::error_code fault;
  for (fs::directory_iterator entry(root, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    std::error_code unknown;
    const std::string name = entry->path().filename().string();
    const auto own = prefix_of(name);
    if (!own || entry->is_symlink(unknown) || !entry->is_directory(unknown)) continue;
    if (prefix.empty() || *own == prefix) found.emplace_back(name.substr(own->size()), name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& each : found) names.push_back(std::move(each.second));
  return names;
}

void settle_run_folder(TuningConfig& config, const CommandLine& options, std::time_t now) {
  AutotuningConfig& autotuning = config.autotuning;
  if (autotuning.has_own_results_dir) return;
  const std::string root = autotuning.results_dir;
  const std::string prefix = run_prefix(config.source);
  std::string name;
  if (options.resume || options.force_resume) {
    name = run_to_resume(config);
  } else if (options.overwrite) {
    const auto earlier = run_folders(root, prefix);
    if (!earlier.empty()) name = earlier.back();
  }
  if (name.empty()) name = prefix + utc_stamp(now);
  use_folder(autotuning, concat(root, "/", name));
}

void make_run_folder(AutotuningConfig& config, const CommandLine& options) {
  const bool is_new = !options.resume && !options.force_resume && !options.overwrite;
  if (config.has_own_results_dir || !is_new) return;
  const fs::path wanted = config.results_dir;
  ensure_directory(wanted.parent_path().string());
  fs::path made = wanted;
  for (int number = 2; !fs::create_directory(made); ++number) {
    made = concat(wanted.string(), "-", number);
  }
  use_folder(config, made.string());
}

void point_latest_at(const AutotuningConfig& config) {
  const fs::path folder = (fs::absolute(config.results_dir) / "").lexically_normal().parent_path();
  const fs::path link = folder.parent_path() / kLatestName;
  std::error_code fault;
  const auto kind = fs::symlink_status(link, fault).type();
  // Folders with names of the user's choice have no such link beside them.
  if (!prefix_of(folder.filename().string())) return;
  if (config.has_own_results_dir && kind != fs::file_type::symlink) return;
  if (kind != fs::file_type::symlink && kind != fs::file_type::not_found) {
    log_warning(concat(link.string(), " is no link, so that it does not name the last run"));
    return;
  }
  const std::string fresh = concat(link.string(), ".", ::getpid(), ".tmp");
  fs::remove(fresh, fault);
  fs::create_directory_symlink(folder.filename(), fresh, fault);
  if (fault) throw_file_error("make link", fresh, fault.value());
  fs::rename(fresh, link, fault);
  if (fault) throw_file_error("replace", link.string(), fault.value());
}

std::string last_results_dir(const AutotuningConfig& config) {
  if (config.has_own_results_dir) return config.results_dir;
  const std::string latest = latest_in(config.results_dir);
  return latest.empty() ? config.results_dir : concat(config.results_dir, "/", latest);
}

std::string status_folder(const std::string& directory) {
  if (is_own_status_file(concat(directory, "/", kStatusName))) return directory;
  const std::string latest = latest_in(directory);
  return latest.empty() ? directory : concat(directory, "/", latest);
}

std::string results_root(const AutotuningConfig& config) {
  if (!config.has_own_results_dir) return kDefaultResultsDir;
  const fs::path folder = config.results_dir;
  std::error_code fault;
  const bool is_runs = prefix_of(folder.filename().string()) &&
                       fs::is_symlink(folder.parent_path() / kLatestName, fault);
  return is_runs ? folder.parent_path().string() : config.results_dir;
}

}  // namespace dstune
