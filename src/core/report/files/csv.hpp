// results.csv: one row per configuration, for spreadsheets and scripts.
#pragma once

#include <string>
#include <vector>

#include "core/report/tables/axes.hpp"
#include "core/report/tables/result_rows.hpp"

namespace dstune {

/// One field as RFC 4180 wants it: quoted if it holds a comma, a quote or a line break.
std::string csv_field(const std::string& text);

/// Header with units, then one line per row in their order; lines end with CR LF. Numbers are
/// exact; cells that an outcome has no value for are empty. Where a configuration was repeated, its
/// step times and rates are means of `runs` repetitions, and ranks and times of day those of its
/// first run.
/// @param settings  have a column each, by their column_name(), but for those that every table has:
///                  stage, micro-batch, accumulation and ranks
std::string to_csv(const std::vector<ResultRow>& rows, const std::vector<ResultAxis>& settings);

}  // namespace dstune
