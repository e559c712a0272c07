#include "core/report/files/own_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <optional>
#include <string_view>
#include <system_error>

#include <boost/json/object.hpp>

#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/config/command_line/output_forms.hpp"
#include "core/report/journal/journal_file.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/report/tables/summary.hpp"

namespace dstune {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> fixed_names() {
  std::vector<std::string> names = {kStatusName, kConfigFileName, "summary.txt", "results.csv",
                                    "predictions.csv"};
  const auto add = [&](const char* file, const char* extension) {
    for (const char* state : {"_optimal.", "_provisional."}) {
      names.push_back(concat(file, state, extension));
    }
  };
  add("ds_config", "json");
  add("cmd", "txt");
  for (const EmittedFormTraits& form : kEmittedForms) add(form.file, form.extension);
  return names;
}

constexpr std::array kExperimentFiles = {"ds_config.json", "exp.json", "metrics.json", "stderr.log",
                                         "model_info.json"};

bool is_plain_file(const fs::path& path) {
  std::error_code fault;
  return fs::symlink_status(path, fault).type() == fs::file_type::regular;
}

enum class Kind { file, folder };

// Sorted; without links. The directory itself tells the kinds, so that entries cost no call each.
std::vector<fs::path> entries_in(const fs::path& folder, Kind kind) {
  std::vector<fs::path> entries;
  std::error_code fault;
  for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    std::error_code unknown;
    const bool is_wanted =
        kind == Kind::file ? entry->is_regular_file(unknown) : entry->is_directory(unknown);
    if (is_wanted && !entry->is_symlink(unknown)) entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// "a.json" of "a.json.4711.tmp" if 4711 is a process of the runs; else "".
std::string target_of_unfinished(const std::string& file, const Runs& runs) {
  constexpr std::string_view kEnd = ".tmp";
  if (!file.ends_with(kEnd)) return "";
  const std::string_view rest = std::string_view(file).substr(0, file.size() - kEnd.size());
  const auto dot = rest.rfind('.');
  if (dot == std::string_view::npos) return "";
  const std::string_view digits = rest.substr(dot + 1);
  int pid = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  const bool known = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() &&
                     std::any_of(runs.processes.begin(), runs.processes.end(),
                                 [pid](const RunProcess& process) { return process.pid == pid; });
  return known ? std::string(rest.substr(0, dot)) : "";
}

// back_up_journal() names them so: ".bak", ".bak.2", ...
bool is_backup_name(std::string_view name) {
  const std::string first = concat(kJournalName, ".bak");
  if (!name.starts_with(first)) return false;
  const std::string_view rest = name.substr(first.size());
  return rest.empty() || (rest.size() > 1 && rest.front() == '.' &&
                          std::all_of(rest.begin() + 1, rest.end(),
                                      [](char letter) { return letter >= '0' && letter <= '9'; }));
}

bool is_own_backup(const fs::path& path) {
  try {
    const auto text = read_journal_file(path.string());
    return text && read_journal(*text, path.string()).origin == JournalContent::Origin::ours;
  } catch (const std::exception&) {
    return false;
  }
}

struct Finder {
  enum class Wanted { all, unfinished };

  const Runs& runs;
  Wanted wanted;
  std::vector<fs::path> finished = {};
  std::vector<fs::path> unfinished = {};

  /// Asks is_own(name) of the plain files of `folder` if they are wanted, and of what they would be
  /// if they were finished.
  template <class IsOwn>
  void look_in(const fs::path& folder, IsOwn is_own) {
    for (const auto& path : entries_in(folder, Kind::file)) {
      const std::string name = path.filename().string();
      const std::string target = target_of_unfinished(name, runs);
      if (!target.empty()) {
        if (is_own(target, false)) unfinished.push_back(path);
      } else if (wanted == Wanted::all && is_own(name, true)) {
        finished.push_back(path);
      }
    }
  }
};

template <class Names>
bool is_among(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Finder find(const std::string& results_dir, const std::string& exps_dir, const Runs& runs,
            Finder::Wanted wanted) {
  Finder finder{runs, wanted};
  const auto fixed = fixed_names();
  // These two may be links: the user named them.
  finder.look_in(results_dir, [&](const std::string& name, bool whole) {
    if (is_backup_name(name)) {
      return !whole || is_own_backup(fs::path(results_dir) / name);
    }
    return is_among(fixed, name) || (!whole && name == kJournalName);
  });
  finder.look_in(exps_dir, [&](const std::string& name, bool whole) {
    const fs::path file(name);
    return file.extension() == ".json" && runs.names.count(file.stem().string()) > 0 &&
           (!whole || is_own_experiment_file(fs::path(exps_dir) / name));
  });
  std::set<std::string> folders = runs.names;
  folders.insert(kProfileName);
  for (const auto& path : entries_in(results_dir, Kind::folder)) {
    if (!folders.contains(path.filename().string())) continue;
    const fs::path description = path / "exp.json";
    std::optional<bool> is_ours;  // not asked of the many folders where nothing is found
    finder.look_in(path, [&](const std::string& name, bool) {
      if (!is_among(kExperimentFiles, name)) return false;
      if (!is_ours) is_ours = !is_plain_file(description) || is_own_experiment_file(description);
      return *is_ours;
    });
  }
  return finder;
}

/// True if the file holds a JSON object with all of `keys`.
template <std::size_t N>
bool has_keys(const fs::path& path, const std::array<const char*, N>& keys) {
  constexpr Bytes kLongest = Bytes{16} << 20U;
  if (!is_plain_file(path)) return false;
  try {
    const json::value value = parse_json(read_text_file(path.string(), kLongest));
    const auto* object = value.if_object();
    return object != nullptr && std::all_of(keys.begin(), keys.end(),
                                            [&](const char* key) { return object->contains(key); });
  } catch (const std::exception&) {
    return false;  // unreadable or no JSON: not ours
  }
}

}  // namespace

std::vector<fs::path> find_own_files(const std::string& results_dir, const std::string& exps_dir,
                                     const Runs& runs) {
  Finder finder = find(results_dir, exps_dir, runs, Finder::Wanted::all);
  auto files = std::move(finder.finished);
  files.insert(files.end(), finder.unfinished.begin(), finder.unfinished.end());
  return files;
}

std::vector<fs::path> find_unfinished_files(const std::string& results_dir,
                                            const std::string& exps_dir, const Runs& runs) {
  return find(results_dir, exps_dir, runs, Finder::Wanted::unfinished).unfinished;
}

bool is_own_experiment_file(const fs::path& path) {
  return has_keys(path, std::array{"name", "ds_config", "dstune"});
}

bool is_experiment_file(const fs::path& path) {
  return path.extension() == ".json" && has_keys(path, std::array{"name", "ds_config"});
}

bool is_own_status_file(const fs::path& path) {
  return has_keys(path, std::array{"schema", "status", "exit_code", "experiments", "elapsed_s"});
}

std::vector<std::string> find_blocked_names(const std::string& results_dir) {
  std::vector<std::string> blocked;
  for (const auto& name : fixed_names()) {
    std::error_code fault;
    const fs::path path = fs::path(results_dir) / name;
    const auto type = fs::symlink_status(path, fault).type();
    if (type != fs::file_type::not_found && type != fs::file_type::regular) blocked.push_back(name);
  }
  return blocked;
}

}  // namespace dstune
