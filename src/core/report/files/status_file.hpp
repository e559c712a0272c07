// status.json: how the run stands or ended, where mpirun's exit code cannot say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"
#include "core/report/journal/run_process.hpp"
#include "core/report/tables/standing.hpp"

namespace dstune {

enum class RunState { running, found, nothing_fits, failed, interrupted, wrong_input };

struct RunStatus {
  RunState state = RunState::running;
  int exit_code = 0;                ///< what the program returns; null in the file while running
  std::optional<std::string> best;  ///< name of the optimum
  std::string message;              ///< why, in one text; "" if there is nothing to add
  int experiments = 0;              ///< finished ones
  Seconds elapsed = 0;
  bool provisional = false;    ///< a run that goes on, or goes on with --resume, may find a better
  RunProcess process = {};     ///< rank 0
  std::int64_t heartbeat = 0;  ///< when it was written: seconds since 1970; 0: not known
  std::string restart = {};    ///< why the same command with --resume would go on, or ""
  /// The finding about each worker that was found to be slow.
  std::vector<std::string> slow_workers = {};
  Standing standing = {};  ///< while the run goes on
};

/// {"schema", "status", "exit_code", "best", "provisional", "message", "experiments", "elapsed_s",
/// "heartbeat" and "heartbeat_unix_s" (the same moment), "process"} and, if they are not empty,
/// "restart": "worker_lost" and "slow_workers", a list of strings; status is "running" | "found" |
/// "nothing_fits" | "failed" | "interrupted" | "wrong_input". While it is "running" also the keys
/// of to_json(const Standing&).
json::object to_json(const RunStatus& status);
/// Inverse of to_json; also of schema 1, which lacks what tells the running from the dead.
/// @throws std::exception  if `object` is no status
RunStatus run_status_from_json(const json::object& object);

/// `status` of this process, now.
RunStatus stamped(RunStatus status);

enum class Life {
  running,
  dead,      ///< it did not end by itself: killed, or its machine is gone
  finished,  ///< it ended and said how
  unknown,   ///< an earlier version, which did not say enough
};

std::string_view name_of(Life life);

/// A rank 0 whose process cannot be seen is dead if its last heartbeat is so long ago.
constexpr Seconds kHeartbeat = 10;
constexpr Seconds kDeadAfter = 60;

/// @param sight  look_for(status.process)
/// @param age    seconds since status.heartbeat, by the clock of the asking host
Life judge(const RunStatus& status, Sight sight, Seconds age);

/// "running: 12 of about 40 experiments in 34 s, about 80 s left, best so far z2_gas1_tmbspg4;
/// nodeA, process 4711, ..."; while it runs, lines follow on what runs now, the best and the last
/// event. There is no line break at the end.
std::string describe(const RunStatus& status, Life life, Seconds age);

/// Replaces `path`, on disk when it returns. @throws Error
void write_status_file(const std::string& path, const RunStatus& status);

/// True if status.json of `results_dir` is that of another run which is still running, as far as
/// its process or its last heartbeat can tell (judge()): the second lock, for results_dirs whose
/// journal cannot be locked. False if there is no such file, or it cannot be read.
bool another_run_lives(const std::string& results_dir);

}  // namespace dstune
