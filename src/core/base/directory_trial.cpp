#include "core/base/directory_trial.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.hpp"

namespace dstune {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kMode = 0777;

/// Directories that are removed again, the inner ones first.
class TrialDirectories {
 public:
  TrialDirectories() = default;
  ~TrialDirectories() {
    std::for_each(made_.rbegin(), made_.rend(),
                  [](const std::string& path) { ::rmdir(path.c_str()); });
  }
  TrialDirectories(const TrialDirectories&) = delete;
  TrialDirectories& operator=(const TrialDirectories&) = delete;

  bool make(const std::string& path) {
    if (::mkdir(path.c_str(), kMode) != 0) return false;
    made_.push_back(path);
    return true;
  }

  /// Makes a directory with a name of its own inside `path`.
  /// @returns its path, or "" if that failed
  std::string make_inside(const std::string& path) {
    std::string inner = path + "/.dstune-trial-XXXXXX";
    if (::mkdtemp(inner.data()) == nullptr) return "";
    made_.push_back(inner);
    return inner;
  }

 private:
  std::vector<std::string> made_;
};

std::string reason(const fs::path& path) {
  const int fault = errno;
  return concat("cannot be written to: ", path.string(), ": ", std::strerror(fault));
}

}  // namespace

std::string why_not_writable(const std::string& path) {
  std::error_code ignored;
  fs::path whole = fs::absolute(path, ignored).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  std::vector<fs::path> missing;
  fs::path existing = whole;
  for (; !fs::exists(existing, ignored) && existing != existing.parent_path();
       existing = existing.parent_path()) {
    missing.push_back(existing);
  }
  TrialDirectories trial;
  fs::path inner = trial.make_inside(existing.string());
  if (inner.empty()) return reason(missing.empty() ? whole : missing.back());
  for (auto part = missing.rbegin(); part != missing.rend(); ++part) {
    inner /= part->filename();
    if (!trial.make(inner.string())) return reason(*part);
  }
  return "";
}

}  // namespace dstune
