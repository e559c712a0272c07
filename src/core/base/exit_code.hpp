// The exit codes of the program.
#pragma once

namespace dstune {

enum ExitCode : int {
  exit_found = 0,
  exit_internal_error = 1,
  exit_wrong_input = 2,
  exit_nothing_fits = 3,
  exit_interrupted = 4  ///< by a signal, or by the loss of too many workers; --resume goes on
};

}  // namespace dstune
