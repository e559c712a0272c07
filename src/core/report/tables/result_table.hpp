// The result of a run on stdout: a Markdown table, or the same as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/line_width.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/tables/axes.hpp"
#include "core/report/tables/metric_value.hpp"
#include "core/report/tables/result_rows.hpp"

namespace dstune {

/// One row per configuration (result_rows()), for --format table: the optimum with "*", what looks
/// better with "~". A setting has a column only if it varied, "runs" is there where something was
/// repeated. The table is at most `columns` wide, with as many columns as have room
/// (fitted_table()), and so is each line under it. Under it stand what the marks and "+-" are, why
/// rows have no numbers, and what --wide shows besides.
/// @param remarks  what to read it with: notes under the table
/// @param wide     every column, whatever its width
/// @param columns  of a terminal, in characters
/// @returns "" if there are no records
std::string result_table(const std::vector<Record>& records, Metric metric,
                         const std::vector<std::string>& remarks = {}, const Optimum& optimum = {},
                         bool wide = false, std::size_t columns = kLineWidth);

/// For --format json: an array of objects with name, rank numbers, DeepSpeed JSON, settings, times
/// and outcome of every run, the optimum first and then by their own numbers. Those that are no
/// repetitions are configurations and have more: "announced", the figures of the table; "searched",
/// their settings of `searched` and others that vary, by their column_name(); and "note", where
/// their ResultRow has one. "pareto" is whether it is of pareto_front(), "tie" whether of
/// Optimum::ties, and where something was chosen, "optimum" whether it is that; where the user's
/// own configuration was tried, "is_baseline" is whether it is that, and the optimum has
/// "speedup_over_baseline" with "speedup_over_baseline_interval_percent" (speedup()).
std::string result_json(const std::vector<Record>& records, Metric metric,
                        const Optimum& optimum = {}, const std::vector<ResultAxis>& searched = {});

}  // namespace dstune
