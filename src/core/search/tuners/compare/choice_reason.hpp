// Why the optimum is the optimum, where the table has a faster row.
#pragma once

#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// Of an optimum than which no other row has a better number.
inline constexpr const char* kFastest = "the fastest";

/// Few words for the optimum's row: kFastest, "the fastest when repeated", or what it has
/// before the fastest, from which noise does not tell it (simplicity.hpp): "as fast as
/// z3_gas1_tmbspg4 within noise, and a smaller stage".
/// @param records  of the run, in the order they finished
std::string choice_reason(const std::vector<Record>& records, Metric metric, const Record& best);

}  // namespace dstune
