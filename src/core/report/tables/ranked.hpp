// The order of results: the better number first.
#pragma once

#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/report/tables/metric_value.hpp"

namespace dstune {

/// Whether `a` comes before `b`: what has numbers before what has none, then by `metric`; of equal
/// ones that which needs less memory (what counts against the limit). Names count for nothing.
bool comes_before(Metric metric, const Record& a, const Record& b);

/// `records` in that order, those that are equal in their own. `optimum`, if it is among them,
/// comes before all.
std::vector<Record> ranked(std::vector<Record> records, Metric metric,
                           const std::string& optimum = "");

}  // namespace dstune
