// Whether what a journal says can have happened: forged and garbled numbers are not believed.
#pragma once

#include <string>
#include <string_view>

#include "core/report/journal/journal.hpp"

namespace dstune {

/// Why `record` cannot have been measured ("ranks holds -1"), or "".
std::string find_forgery(const Record& record);

/// Why `time`, in seconds since the run began, cannot be one ("at_s is 1e308"), or "".
std::string find_forgery(std::string_view name, Seconds time);

/// Why a number of a line that says of an experiment ("started", "finished") cannot be true
/// ("outcome.ledger.collectives.0.bytes is -1"), or "": whatever a field means, counts, bytes,
/// times and rates are neither negative nor astronomical.
std::string find_forged_number(const json::object& line);

/// Whether `name` can be that of an experiment's folder: printable, no path, not hidden, not empty,
/// not too long for a file system.
bool is_folder_name(std::string_view name);

}  // namespace dstune
