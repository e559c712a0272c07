// results.csv: one row per record, for spreadsheets and scripts.
#pragma once

#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"

namespace dstune {

/// One field as RFC 4180 wants it: quoted if it holds a comma, a quote or a line break.
std::string csv_field(const std::string& text);

/// Header with units, then one row per record in their order; lines end with CR LF. Numbers are
/// exact; cells that an outcome has no value for are empty.
std::string to_csv(const std::vector<Record>& records);

}  // namespace dstune
