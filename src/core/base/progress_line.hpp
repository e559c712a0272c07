// A line on stderr that says how far work is of which nothing else is seen.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "core/base/units.hpp"

namespace dstune {

/// Where a progress line is written, and by which clock. Tests have their own.
struct ProgressOutput {
  bool is_terminal = false;      ///< the line is rewritten; else each is one of its own
  std::function<Seconds()> now;  ///< since an arbitrary start
  std::function<void(std::string_view)> say;  ///< a line; "" takes it from a terminal
};

/// The log of this process (core/base/log.hpp), and on a terminal the line below it.
ProgressOutput standard_progress();

/// Counts the pieces of some work. It is silent for two seconds; then the line is rewritten twice a
/// second on a terminal, and elsewhere there is a line every five seconds. Threads may share it.
class ProgressLine {
 public:
  /// @param what  what is done, before the count: "stage 3: dry runs"
  ProgressLine(std::string what, std::size_t total, ProgressOutput output = standard_progress());
  /// Takes the line from a terminal.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Counts one more piece.
  void advance();

 private:
  std::string what_;
  std::size_t total_;
  ProgressOutput output_;
  std::mutex mutex_;
  std::size_t done_ = 0;
  Seconds next_ = 0;  ///< when the next line is due
  bool is_shown_ = false;
};

}  // namespace dstune
