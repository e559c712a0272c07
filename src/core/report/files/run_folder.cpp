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

/// The name of the folder that the link names, or of the newest run's where there is no link; ""
/// if there is no such folder.
std::string latest_in(const std::string& root) {
  std::error_code fault;
  const fs::path link = fs::path(root) / kLatestName;
  if (fs::symlink_status(link, fault).type() == fs::file_type::not_found) {
    const std::vector<std::string> runs = run_folders(root);
    return runs.empty() ? "" : runs.back();
  }
  const fs::path target = fs::read_symlink(link, fault);
  if (fault || !fs::is_directory(fs::path(root) / target, fault)) return "";
  return target.lexically_normal().filename().string();
}

/// The absolute path of the configuration's file, or `source` if it is read from none.
std::string configuration_of(const std::string& source) {
  std::error_code fault;
  const fs::path path = source == "-" ? fs::path() : fs::canonical(source, fault);
  return fault || path.empty() ? source : path.string();
}

bool is_file(const std::string& configuration) { return fs::path(configuration).is_absolute(); }

/// What record_configuration() wrote; "" if it did not.
std::string recorded_configuration(const std::string& folder) {
  constexpr Bytes kLongest = Bytes{1} << 16U;
  const std::string path = concat(folder, "/", kConfigFileName);
  std::error_code fault;
  if (fs::symlink_status(path, fault).type() != fs::file_type::regular) return "";
  try {
    std::string text = read_text_file(path, kLongest);
    if (text.ends_with('\n')) text.pop_back();
    return text;
  } catch (const Error&) {
    return "";
  }
}

/// The names of the configuration's runs; the one to go on with, begun or resumed last, is the
/// last.
std::vector<std::string> own_runs(const std::string& root, const std::string& source) {
  const std::string configuration = configuration_of(source);
  std::vector<std::string> runs = run_folders(root);
  std::erase_if(runs, [&](const std::string& name) {
    return recorded_configuration(concat(root, "/", name)) != configuration;
  });
  const auto latest = std::ranges::find(runs, latest_in(root));
  if (latest != runs.end()) std::rotate(latest, latest + 1, runs.end());
  return runs;
}

fs::path whole_folder(const AutotuningConfig& config) {
  return (fs::absolute(config.results_dir) / "").lexically_normal().parent_path();
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

/// Why --resume cannot tell which run is meant, and what to do; "" if there is nothing that could
/// be meant: job scripts say --resume from the first start on.
std::string nothing_to_resume(const TuningConfig& config) {
  const std::string& root = config.autotuning.results_dir;
  const auto alike = run_folders(root, run_prefix(config.source));
  if (!alike.empty()) {
    return concat("finds no run of this file in ", root, "; accepted: --results-dir with one of ",
                  list(alike, root),
                  " (runs of other files of the same name, or of unknown files), or no --resume, "
                  "which starts a new run");
  }
  if (has_journal(root)) {
    return concat("finds no run folder in ", root,
                  ", but the results of an earlier version; accepted: --results-dir ", root,
                  " to continue them");
  }
  return "";
}

/// The name of the run that --resume means; "" if there is none yet.
std::string run_to_resume(const TuningConfig& config) {
  const auto own = own_runs(config.autotuning.results_dir, config.source);
  if (!own.empty()) return own.back();
  const std::string fault = nothing_to_resume(config);
  if (!fault.empty()) throw ConfigError(config.source, {{"--resume", fault}});
  return "";
}

/// `name`, or with a number behind it if there is such a folder in `root` already.
std::string free_name(const std::string& root, const std::string& name) {
  std::string free = name;
  std::error_code fault;
  for (int number = 2; fs::exists(fs::path(root) / free, fault); ++number) {
    free = concat(name, "-", number);
  }
  return free;
}

/// The name of the run that --overwrite replaces; "" if there is none.
std::string run_to_replace(const TuningConfig& config) {
  if (!is_file(configuration_of(config.source))) return "";
  const auto own = own_runs(config.autotuning.results_dir, config.source);
  return own.empty() ? "" : own.back();
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
  names.reserve(found.size());
  for (auto& each : found) names.push_back(std::move(each.second));
  return names;
}

void settle_run_folder(TuningConfig& config, const CommandLine& options, std::time_t now) {
  AutotuningConfig& autotuning = config.autotuning;
  if (autotuning.has_own_results_dir) return;
  const std::string root = autotuning.results_dir;
  std::string name;
  if (options.resume || options.force_resume) {
    name = run_to_resume(config);
  } else if (options.overwrite) {
    name = run_to_replace(config);
  }
  if (name.empty()) name = free_name(root, run_prefix(config.source) + utc_stamp(now));
  use_folder(autotuning, concat(root, "/", name));
}

void make_run_folder(TuningConfig& config, const CommandLine& options) {
  AutotuningConfig& autotuning = config.autotuning;
  const fs::path wanted = autotuning.results_dir;
  const bool goes_on = (options.resume || options.force_resume) && fs::exists(wanted);
  if (autotuning.has_own_results_dir || goes_on) return;
  if (options.overwrite &&
      recorded_configuration(wanted.string()) == configuration_of(config.source)) {
    return;
  }
  ensure_directory(wanted.parent_path().string());
  fs::path made = wanted;
  for (int number = 2; !fs::create_directory(made); ++number) {
    made = concat(wanted.string(), "-", number);
  }
  use_folder(autotuning, made.string());
  record_configuration(config);  // a run that is killed from here on can be gone on with
}

void record_configuration(const TuningConfig& config) {
  const fs::path folder = whole_folder(config.autotuning);
  const std::string path = (folder / kConfigFileName).string();
  std::error_code fault;
  const bool is_there = fs::symlink_status(path, fault).type() != fs::file_type::not_found;
  if (is_there || !prefix_of(folder.filename().string())) return;
  write_file_atomically(path, concat(configuration_of(config.source), "\n"),
                        Durability::process_crash);
}

void point_latest_at(const AutotuningConfig& config) {
  const fs::path folder = whole_folder(config);
  const fs::path link = folder.parent_path() / kLatestName;
  std::error_code fault;
  const auto kind = fs::symlink_status(link, fault).type();
  // Folders with names of the user's choice have no such link beside them.
  if (!prefix_of(folder.filename().string())) return;
  if (config.has_own_results_dir && kind != fs::file_type::symlink) return;
  if (kind != fs::file_type::symlink && kind != fs::file_type::not_found) {
    log_warning(
        concat(link.string(), " is not a symbolic link, so it cannot point to the last run"));
    return;
  }
  const std::string fresh = concat(link.string(), ".", ::getpid(), ".tmp");
  fs::remove(fresh, fault);
  fs::create_directory_symlink(folder.filename(), fresh, fault);
  if (!fault) fs::rename(fresh, link, fault);
  if (!fault) return;
  // Some file systems have no links, and what matters is in the folder itself.
  log_warning(concat("cannot create the link ", link.string(),
                     ", so it does not point to the last ", "run: ", fault.message()));
  fs::remove(fresh, fault);
}

AskedRun asked_run(const TuningConfig& config) {
  const std::string& root = config.autotuning.results_dir;
  if (config.autotuning.has_own_results_dir) return {root};
  const auto own = own_runs(root, config.source);
  if (!own.empty()) return {concat(root, "/", own.back())};
  const std::string latest = latest_in(root);
  if (latest.empty()) return {root};
  return {concat(root, "/", latest), true};
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
                       (fs::is_symlink(folder.parent_path() / kLatestName, fault) ||
                        !recorded_configuration(folder.string()).empty());
  return is_runs ? folder.parent_path().string() : config.results_dir;
}

}  // namespace dstune
