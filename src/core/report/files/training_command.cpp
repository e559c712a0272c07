#include "core/report/files/training_command.hpp"

#include <cstdlib>

#include "core/base/file.hpp"

namespace dstune {

bool is_training_started() { return std::getenv(kCommandFileVariable) != nullptr; }

void leave_training_command(const std::string& line) {
  const char* const path = std::getenv(kCommandFileVariable);
  if (path != nullptr) write_file_atomically(path, line);
}

}  // namespace dstune
