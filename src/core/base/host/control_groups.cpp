#include "core/base/host/control_groups.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "core/base/text.hpp"

namespace dstune {

namespace {

// Version 1 has no word for "no limit": it gives the largest number of pages.
constexpr Bytes kNoLimit = Bytes{1} << 60U;

/// The place of the process in one hierarchy.
struct Membership {
  int version = 2;
  std::string path;  ///< its group within the hierarchy: "/job_7"
};

/// The place where a hierarchy is mounted.
struct Mount {
  std::string root;   ///< the group that is mounted
  std::string point;  ///< its folder
};

bool has_word(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The hierarchy of version 1 that has the controller of memory, or else that of version 2, whose
// number is 0.
std::optional<Membership> membership(const std::string& root) {
  std::optional<Membership> unified;
  std::istringstream lines(read_kernel_file(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (has_word(controllers, "memory")) return Membership{1, std::move(path)};
    if (controllers.empty()) unified = Membership{2, std::move(path)};
  }
  return unified;
}

// Blanks and backslashes in paths are written as "\040" and so on.
std::string unescaped(const std::string& text) {
  constexpr std::size_t kLength = 4;
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string digits = text[i] == '\\' ? text.substr(i + 1, kLength - 1) : "";
    if (digits.size() == kLength - 1 && digits.find_first_not_of("01234567") == std::string::npos) {
      plain += static_cast<char>(std::stoi(digits, nullptr, 8));
      i += kLength - 1;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// A line of the file reads:
// "36 35 0:31 ROOT POINT rw,relatime [FIELD...] - cgroup cgroup rw,memory"
std::vector<Mount> mounts_of(int version, const std::string& root) {
  std::vector<Mount> mounts;
  std::istringstream lines(read_kernel_file(root + "/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string skipped;
    Mount mount;
    words >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    while (words >> skipped && skipped != "-") {
    }
    std::string type;
    std::string options;
    words >> type >> skipped >> options;
    const bool fits =
        version == 2 ? type == "cgroup2" : type == "cgroup" && has_word(options, "memory");
    if (fits) mounts.push_back({unescaped(mount.root), unescaped(mount.point)});
  }
  return mounts;
}

/// The part of `path` below `mount`, "" for the mounted group itself; none if it is not below.
std::optional<std::string> below(const Mount& mount, const std::string& path) {
  if (mount.root == "/") return path == "/" ? "" : path;
  if (path == mount.root) return "";
  if (path.starts_with(mount.root + "/")) return path.substr(mount.root.size());
  return std::nullopt;
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// In a container the path may be that of the host, and the mount point the group itself.
std::string own_folder(const std::vector<Mount>& mounts, const std::string& path,
                       const std::string& root, std::string& top) {
  for (const Mount& mount : mounts) {
    const auto relative = below(mount, path);
    if (!relative || relative->starts_with("/..")) continue;
    if (!is_folder(concat(root, mount.point, *relative))) continue;
    top = mount.point;
    return mount.point + *relative;
  }
  top = mounts.front().point;
  return top;
}

std::string read_in(const ControlGroup& group, const char* file, const std::string& root) {
  return read_kernel_file(concat(root, group.path, "/", file));
}

std::optional<Bytes> number_in(const std::string& text) {
  std::istringstream words(text);
  Bytes number = 0;
  return words >> number ? std::optional(number) : std::nullopt;
}

std::optional<GroupLimit> limit_in(const ControlGroup& group, const char* file,
                                   const std::string& root) {
  const auto bytes = number_in(read_in(group, file, root));
  if (!bytes || *bytes >= kNoLimit) return std::nullopt;
  return GroupLimit{*bytes, file};
}

// A group of version 1 may leave the groups below it alone.
bool counts_those_below(const ControlGroup& group, const std::string& root) {
  return group.version == 2 || number_in(read_in(group, "memory.use_hierarchy", root)) != Bytes{0};
}

}  // namespace

std::string read_kernel_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<Bytes> number_of(std::string_view text, std::string_view key) {
  for (const auto& line : split(text, '\n')) {
    std::istringstream words(line);
    std::string name;
    Bytes number = 0;
    if (!(words >> name >> number)) continue;
    if (name == key || (name.ends_with(':') && name.substr(0, name.size() - 1) == key)) {
      return number;
    }
  }
  return std::nullopt;
}

std::vector<ControlGroup> memory_groups(const std::string& root) {
  const auto own = membership(root);
  if (!own) return {};
  const auto mounts = mounts_of(own->version, root);
  if (mounts.empty()) return {};
  std::string top;
  std::string path = own_folder(mounts, own->path, root, top);
  std::vector<ControlGroup> groups = {{own->version, path}};
  while (path.size() > top.size()) {
    path.erase(path.rfind('/'));
    const ControlGroup above{own->version, path};
    if (counts_those_below(above, root)) groups.push_back(above);
  }
  return groups;
}

std::optional<GroupLimit> limit_of(const ControlGroup& group, const std::string& root) {
  if (group.version == 1) return limit_in(group, "memory.limit_in_bytes", root);
  const auto most = limit_in(group, "memory.max", root);
  const auto high = limit_in(group, "memory.high", root);
  return high && (!most || high->bytes < most->bytes) ? high : most;
}

std::optional<Bytes> hierarchical_limit_of(const ControlGroup& group, const std::string& root) {
  if (group.version == 2) return std::nullopt;
  const auto limit = number_of(read_in(group, "memory.stat", root), "hierarchical_memory_limit");
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

Bytes used_in(const ControlGroup& group, const std::string& root) {
  const bool first = group.version == 1;
  const Bytes all =
      number_in(read_in(group, first ? "memory.usage_in_bytes" : "memory.current", root))
          .value_or(0);
  const std::string parts = read_in(group, "memory.stat", root);
  Bytes of_files = 0;
  for (const char* key : {"inactive_file", "active_file"}) {
    of_files += number_of(parts, first ? concat("total_", key) : key).value_or(0);
  }
  return all - std::min(all, of_files);
}

std::optional<std::uint64_t> oom_kills_in(const ControlGroup& group, const std::string& root) {
  return number_of(
      read_in(group, group.version == 1 ? "memory.oom_control" : "memory.events", root),
      "oom_kill");
}

std::optional<std::uint64_t> oom_kills_of_host(const std::string& root) {
  return number_of(read_kernel_file(root + "/proc/vmstat"), "oom_kill");
}

}  // namespace dstune
