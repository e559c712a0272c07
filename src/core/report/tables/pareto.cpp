#include "core/report/tables/pareto.hpp"

#include <algorithm>
#include <variant>

#include "core/base/text.hpp"
#include "core/report/tables/ranked.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {
namespace {

Bytes memory_of(const Record& record) { return measured_of(record)->peak_memory.counted(); }

}  // namespace

std::vector<Record> pareto_front(const std::vector<Record>& records, Metric metric) {
  std::vector<Record> front;
  for (const Record& record : ranked(records, metric)) {
    if (measured_of(record) == nullptr || record.experiment.repetition > 0) continue;
    // Of equally fast ones those come first that need least memory.
    const bool is_smaller = front.empty() || memory_of(record) < memory_of(front.back());
    const bool is_equal = !front.empty() && memory_of(record) == memory_of(front.back()) &&
                          metric_value(metric, *measured_of(record)) ==
                              metric_value(metric, *measured_of(front.back()));
    if (is_smaller || is_equal) front.push_back(record);
  }
  return front;
}

std::string pareto_table(const std::vector<Record>& records, Metric metric) {
  const auto front = pareto_front(records, metric);
  if (front.size() < 2) return "";
  Table table({{"pareto_exp_name", Table::Align::left}, {"metric_val"}, {"peak (GiB)"}});
  for (const Record& record : front) {
    table.add_row({record.experiment.name, concat(metric_value(metric, *measured_of(record))),
                   fixed(static_cast<double>(memory_of(record)) / 0x1p30, 2)});
  }
  return table.to_string();
}

}  // namespace dstune
