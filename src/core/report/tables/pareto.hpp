// The experiments that no other beats in both speed and memory.
#pragma once

#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/report/tables/metric_value.hpp"

namespace dstune {

/// Measured experiments, repetitions aside, than which none is at least as good by `metric` with no
/// more memory (what counts against the limit) and better in one of them: the fastest first, so
/// with less and less memory. Of those that are equal in both all are of the front.
std::vector<Record> pareto_front(const std::vector<Record>& records, Metric metric);

/// The front as a table of name, metric and memory per rank; "" with fewer than two, which are no
/// choice.
std::string pareto_table(const std::vector<Record>& records, Metric metric);

}  // namespace dstune
