// status.json: how the run stands or ended, where mpirun's exit code cannot say it.
#pragma once

#include <optional>
#include <string>

#include "core/base/json.hpp"
#include "core/base/units.hpp"

namespace dstune {

enum class RunState { running, found, nothing_fits, failed, interrupted, wrong_input };

struct RunStatus {
  RunState state = RunState::running;
  int exit_code = 0;                ///< what the program returns; null in the file while running
  std::optional<std::string> best;  ///< name of the optimum
  std::string message;              ///< why, in one text; "" if there is nothing to add
  int experiments = 0;              ///< finished ones
  Seconds elapsed = 0;
};

/// {"schema", "status", "exit_code", "best", "message", "experiments", "elapsed_s"}; status is
/// "running" | "found" | "nothing_fits" | "failed" | "interrupted" | "wrong_input".
json::object to_json(const RunStatus& status);

/// Replaces `path`, on disk when it returns. @throws Error
void write_status_file(const std::string& path, const RunStatus& status);

}  // namespace dstune
