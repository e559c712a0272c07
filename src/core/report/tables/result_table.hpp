// The result of a run on stdout: a Markdown table, or the same as JSON.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/report/tables/metric_value.hpp"

namespace dstune {

/// The choice of a run.
struct Optimum {
  std::string name;           ///< "": nothing
  std::string reason;         ///< why it and no other, in few words; or ""
  std::string baseline = {};  ///< the experiment that is the user's own configuration; or ""
};

/// Measured experiments by `metric`, the best first (equal ones in their order), then the others in
/// their order. `optimum`, if it is among them, comes before all.
std::vector<Record> ranked(std::vector<Record> records, Metric metric,
                           const std::string& optimum = "");

/// One row per configuration with what is announced() of it, as ranked() orders them, for --format
/// table. A setting has a column only if it varied, "runs" is there where something was repeated;
/// "result" holds the reason where there are no numbers and is left out if all ran. A note under
/// the table says what "+-" is.
/// @param remarks  what to read it with: lines under the table
/// @param ties     names of those that a profile does not tell from the best; with any there is a
///                 column "host overhead" that says "tie"
/// @param optimum  the first row, which the others are compared with; where another is faster, the
///                 column "optimum" says there why it is not the optimum
/// @returns "" if there are no records
std::string result_table(const std::vector<Record>& records, Metric metric,
                         const std::vector<std::string>& remarks = {},
                         const std::set<std::string>& ties = {}, const Optimum& optimum = {});

/// For --format json: an array of objects with name, rank numbers, DeepSpeed JSON, settings, times
/// and outcome of every run, the optimum first and then by their own numbers; "announced" has the
/// figures of the table of those that are no repetitions; "pareto" is whether it is of
/// pareto_front(), "tie" whether of `ties`; where something was chosen, "optimum" is whether it is
/// that, which has a "reason"; where the user's own configuration was tried, "is_baseline" is
/// whether it is that, and the optimum has "speedup_over_baseline" with
/// "speedup_over_baseline_interval_percent" (speedup()).
std::string result_json(const std::vector<Record>& records, Metric metric,
                        const std::set<std::string>& ties = {}, const Optimum& optimum = {});

}  // namespace dstune
