// The exceptions that end a run. An experiment that does not fit, or fails, ends in an Outcome
// instead.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dstune {

/// Something outside of the program failed: the file system, MPI, a library. The message names the
/// call and the reason.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One fault of the user's input.
struct Problem {
  std::string where;  ///< JSON pointer ("/dstune/model"), flag ("--resume") or "line 3"
  std::string what;   ///< "is 4; accepted: 0, 1, 2, 3"

  bool operator==(const Problem&) const = default;
};

/// The user's input is wrong. Holds every fault of the input; the exit code is 2.
///
/// what() is the whole message:
///
///     config.json: 2 problems
///       /dstune/modle  is unknown; did you mean "model"?
///       /train_micro_batch_size_per_gpu  is 0; accepted: an integer >= 1, or "auto"
class ConfigError : public Error {
 public:
  /// @param source    the file, "command line", ...
  /// @param problems  at least one
  ConfigError(const std::string& source, std::vector<Problem> problems);

  const std::vector<Problem>& problems() const noexcept { return problems_; }

 private:
  std::vector<Problem> problems_;
};

}  // namespace dstune
