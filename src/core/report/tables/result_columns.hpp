// The columns of the result's table: settings and numbers, with as many digits as tell something.
#pragma once

#include <vector>

#include "core/report/tables/axes.hpp"
#include "core/report/tables/fitted_table.hpp"
#include "core/report/tables/metric_value.hpp"
#include "core/report/tables/result_rows.hpp"

namespace dstune {

/// All columns that the rows can have, in their order. Settings have one where they vary (`axes`),
/// numbers where any row has them. All numbers of a column have the unit and the decimals that suit
/// its first measured row. What was not measured has a word in place of its step time: "OOM",
/// "failed" or "skipped".
/// @param wide  also whether a row is of the Pareto front, its note, and why it has no numbers
std::vector<FittedColumn> result_columns(const std::vector<ResultRow>& rows,
                                         const std::vector<ResultAxis>& axes, Metric metric,
                                         bool wide);

/// The decimals with which `value` has `digits` significant digits: 2 for 12.468 and four digits, 0
/// for 1603.5.
int decimals_of(double value, int digits);

}  // namespace dstune
