// A line of the journal by itself: all that can be said of it without the lines before it.
#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/base/units.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/journal/journal_line.hpp"

namespace dstune {

/// A line whose text is whole, but which cannot be true.
class Unbelievable : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct JournalEvent {
  JournalLine line;
  std::string type;                      ///< "" where the line has no content
  Seconds at = 0;                        ///< "at_s"
  std::optional<Experiment> experiment;  ///< of "started"
  std::optional<Record> record;          ///< of "finished"
  std::string key;                       ///< of either's experiment
  /// Why the content cannot be believed: Unbelievable, or something else where it is not an event
  /// of a run at all. Then the members above may be missing.
  std::exception_ptr fault;
};

/// @param text  a line without its line break
JournalEvent event_from(std::string_view text);

}  // namespace dstune
