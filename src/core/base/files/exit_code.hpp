// The exit codes of the program, and a file for the one that it ends with, where a launcher's own
// exit code says something else.
#pragma once

namespace dstune {

enum ExitCode : int {
  exit_found = 0,
  exit_internal_error = 1,
  exit_wrong_input = 2,
  exit_nothing_fits = 3,
  exit_interrupted = 4,  ///< by a signal, or by the loss of too many workers; --resume goes on
  exit_drive_failed =
      5  ///< --nvme-sweep: the drive refused, was full, or kept wrong bytes; or it was too slow
};

/// Names the file of leave_exit_code in the environment.
constexpr const char* kExitCodeFileVariable = "DSTUNE_EXIT_CODE_FILE";

/// Makes leave_exit_code write to the file that DSTUNE_EXIT_CODE_FILE names. It writes none if the
/// variable is not set or its path has more than 4000 bytes. To be called once, before any other
/// thread runs.
void use_exit_code_file() noexcept;

/// Replaces the file by `code` in decimal and a newline: a reader finds all of it or the old
/// content. The last call counts. Safe in a signal handler. Errors are ignored: whoever reads the
/// file takes its absence for a process that was killed.
void leave_exit_code(int code) noexcept;

}  // namespace dstune
