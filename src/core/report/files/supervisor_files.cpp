#include "core/report/files/supervisor_files.hpp"

#include <cstdlib>
#include <filesystem>

#include "core/base/files/file.hpp"

namespace dstune {

namespace {

void leave(const char* variable, const std::string& text) {
  const char* const path = std::getenv(variable);
  if (path != nullptr) write_file_atomically(path, text);
}

}  // namespace

bool is_training_started() { return std::getenv(kCommandFileVariable) != nullptr; }

void leave_results_folder(const std::string& results_dir) {
  leave(kResultsFileVariable, std::filesystem::absolute(results_dir).lexically_normal().string());
}

void leave_training_command(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text.append(word).push_back('\0');
  leave(kCommandFileVariable, text);
}

}  // namespace dstune
