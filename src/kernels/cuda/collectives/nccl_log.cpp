#include "kernels/cuda/collectives/nccl_log.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "core/base/text.hpp"

namespace dstune::cuda {

namespace {

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

/// What follows the last `mark` in `log` up to the end of its line; "" without one.
std::string last_after(std::string_view log, std::string_view mark) {
  const std::size_t found = log.rfind(mark);
  if (found == std::string_view::npos) return "";
  const std::string_view rest = log.substr(found + mark.size());
  return std::string(trim(rest.substr(0, rest.find('\n'))));
}

/// An empty file of a new name; "" if there can be none.
std::string make_private_file() {
  std::error_code no_folder;
  const auto folder = std::filesystem::temp_directory_path(no_folder);
  if (no_folder) return "";
  std::string path = folder / "dstune-nccl-XXXXXX";
  const int file = ::mkstemp(path.data());
  if (file < 0) return "";
  ::close(file);
  return path;
}

}  // namespace

NcclFacts nccl_facts(std::string_view log) {
  return {.network = last_after(log, "NCCL INFO Using network "),
          .version = last_after(log, "NCCL version ")};
}

NcclLog NcclLog::begin() {
  for (const char* variable : {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"}) {
    if (is_set(variable)) return {};
  }
  NcclLog log(make_private_file());
  if (log.path_.empty()) return log;
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT,NET", 1);
  ::setenv("NCCL_DEBUG_FILE", log.path_.c_str(), 1);
  return log;
}

NcclLog::~NcclLog() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

NcclLog::NcclLog(NcclLog&& other) noexcept : path_(std::exchange(other.path_, {})) {}

NcclLog& NcclLog::operator=(NcclLog&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

NcclFacts NcclLog::facts() const {
  if (path_.empty()) return {};
  std::ifstream file(path_);
  std::ostringstream text;
  text << file.rdbuf();
  return nccl_facts(text.str());
}

}  // namespace dstune::cuda
