#include "core/report/status_file.hpp"

#include <array>

#include "core/base/file.hpp"

namespace dstune {

json::object to_json(const RunStatus& status) {
  constexpr std::array<const char*, 6> kStates = {"running", "found",       "nothing_fits",
                                                  "failed",  "interrupted", "wrong_input"};
  const bool running = status.state == RunState::running;
  return {{"schema", 1},
          {"status", kStates[static_cast<std::size_t>(status.state)]},
          {"exit_code", running ? json::value(nullptr) : json::value(status.exit_code)},
          {"best", status.best ? json::value(json::string(*status.best)) : json::value(nullptr)},
          {"message", status.message},
          {"experiments", status.experiments},
          {"elapsed_s", status.elapsed}};
}

void write_status_file(const std::string& path, const RunStatus& status) {
  write_file_atomically(path, to_json_text(to_json(status), 2) + "\n");
}

}  // namespace dstune
