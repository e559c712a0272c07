// The configurations of a run as its result shows them: the same rows in the table, in results.csv
// and in JSON.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/report/tables/announced.hpp"
#include "core/report/tables/metric_value.hpp"

namespace dstune {

/// The choice of a run.
struct Optimum {
  std::string name;    ///< "": nothing
  std::string reason;  ///< why it and no other, in few words; or ""
  /// The names of those that a host-overhead profile does not tell from it.
  std::set<std::string> ties = {};
  std::string baseline = {};  ///< the experiment that is the user's own configuration; or ""
};

/// A configuration of a run.
struct ResultRow {
  Announced figures = {};
  bool is_optimum = false;
  bool is_tie = false;       ///< whether it is of Optimum::ties
  bool is_on_front = false;  ///< whether it is of pareto_front()
  /// Whether its number is better than the optimum's, and yet it is not the optimum.
  bool looks_better = false;
  /// How many times as good the first row is: of the metric, whichever direction is better; below 1
  /// where it looks better. 0: not measured.
  double versus_best = 0;
  std::string note = {};  ///< why it is the optimum, or is not although it looks better; or ""
};

/// Whether it was measured: another one has a word in the place of its numbers.
bool has_numbers(const ResultRow& row);

/// One for each configuration, the optimum first, then as ranked() orders them. Without an optimum
/// the first one is what the others are compared with, and none looks better.
std::vector<ResultRow> result_rows(const std::vector<Record>& records, Metric metric,
                                   const Optimum& optimum = {});

}  // namespace dstune
