#include "core/config/model/hub_cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>

#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

constexpr std::string_view kFolderStart = "models--";

// As huggingface_hub reads its variables: a leading "~" is the home folder.
std::filesystem::path folder_in(const char* variable) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (text == nullptr || *text == '\0') return {};
  const std::string_view given(text);
  if (given != "~" && !given.starts_with("~/")) return given;
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): likewise
  if (home == nullptr) return given;
  return std::filesystem::path(home) / given.substr(std::min<std::size_t>(2, given.size()));
}

std::string folder_name(std::string_view name) {
  const auto slash = name.find('/');
  return concat(kFolderStart, name.substr(0, slash), "--", name.substr(slash + 1));
}

// The hub takes names in any case; the folder is called as somebody has written it.
std::filesystem::path find_repository(const std::filesystem::path& cache, std::string_view name) {
  const std::string wanted = folder_name(name);
  std::error_code fault;
  if (std::filesystem::is_directory(cache / wanted, fault)) return cache / wanted;
  for (std::filesystem::directory_iterator each(cache, fault), end; !fault && each != end;
       each.increment(fault)) {
    if (lower(each->path().filename().string()) == lower(wanted)) return each->path();
  }
  return {};
}

// What is in the file becomes a part of a path, so only a commit is taken.
std::string commit_of_main(const std::filesystem::path& repository) {
  std::ifstream file(repository / "refs" / "main");
  std::string commit;
  file >> commit;
  const bool is_commit = std::ranges::all_of(commit, [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z');
  });
  return is_commit ? commit : "";
}

}  // namespace

std::filesystem::path hub_cache() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (auto folder = folder_in(variable); !folder.empty()) return folder;
  }
  if (const auto home = folder_in("HF_HOME"); !home.empty()) return home / "hub";
  if (const auto base = folder_in("XDG_CACHE_HOME"); !base.empty()) {
    return base / "huggingface" / "hub";
  }
  const auto home = folder_in("HOME");
  return home.empty() ? home : home / ".cache" / "huggingface" / "hub";
}

bool is_hub_name(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == name.size()) return false;
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  const std::string_view owner = name.substr(0, slash);
  const std::string_view own = name.substr(slash + 1);
  const auto is_plain = [&](std::string_view part) {
    return part.find_first_not_of(kLetters) == std::string_view::npos && part.front() != '.';
  };
  return is_plain(owner) && is_plain(own);
}

std::filesystem::path find_in_hub_cache(const std::filesystem::path& cache, std::string_view name) {
  if (cache.empty() || !is_hub_name(name)) return {};
  const auto repository = find_repository(cache, name);
  if (repository.empty()) return {};
  const std::string commit = commit_of_main(repository);
  if (commit.empty()) return {};
  const auto config = repository / "snapshots" / commit / "config.json";
  std::error_code ignored;
  return std::filesystem::exists(config, ignored) ? config : std::filesystem::path();
}

std::string hub_name_of(const std::filesystem::path& config_in_cache) {
  const auto repository = config_in_cache.parent_path().parent_path().parent_path();
  const std::string folder = repository.filename().string();
  const auto between = folder.find("--", kFolderStart.size());
  if (!folder.starts_with(kFolderStart) || between == std::string::npos) return "";
  return concat(folder.substr(kFolderStart.size(), between - kFolderStart.size()), "/",
                folder.substr(between + 2));
}

}  // namespace dstune
