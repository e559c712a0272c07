#include "core/report/tables/result_rows.hpp"

#include <algorithm>
#include <utility>

#include "core/report/tables/pareto.hpp"
#include "core/report/tables/ranked.hpp"

namespace dstune {
namespace {

std::string note_of(const ResultRow& row, const ResultRow& first, const Optimum& optimum) {
  if (row.is_optimum) return optimum.reason;
  if (row.looks_better) {
    const bool was_repeated = row.figures.runs > 1 || first.figures.runs <= 1;
    return was_repeated ? "differs from the optimum by no more than noise"
                        : "the number of a single run, which was not repeated";
  }
  return row.is_tie ? "a tie with the optimum within the uncertainty of its host overhead" : "";
}

void compare(ResultRow& row, const Measured* best, Metric metric) {
  const Measured* measured = measured_of(row.figures.record);
  if (measured == nullptr || best == nullptr) return;
  const double value = metric_value(metric, *measured);
  const double of_best = metric_value(metric, *best);
  row.versus_best = is_better(metric, 1, 0) ? of_best / value : value / of_best;
  row.looks_better = is_better(metric, value, of_best);
}

}  // namespace

bool has_numbers(const ResultRow& row) { return measured_of(row.figures.record) != nullptr; }

std::vector<ResultRow> result_rows(const std::vector<Record>& records, Metric metric,
                                   const Optimum& optimum) {
  std::vector<Announced> configurations = announced(records);
  std::set<std::string> front;
  for (const Record& record : pareto_front(records_of(configurations), metric)) {
    front.insert(record.experiment.name);
  }
  std::ranges::stable_sort(configurations, [&](const Announced& a, const Announced& b) {
    return comes_before(metric, a.record, b.record);
  });
  std::vector<ResultRow> rows;
  for (Announced& each : configurations) {
    const std::string& name = each.record.experiment.name;
    const bool is_optimum = !optimum.name.empty() && name == optimum.name;
    rows.push_back({.is_optimum = is_optimum,
                    .is_tie = optimum.ties.contains(name),
                    .is_on_front = front.contains(name)});
    rows.back().figures = std::move(each);
  }
  std::stable_partition(rows.begin(), rows.end(),
                        [](const ResultRow& row) { return row.is_optimum; });
  const Measured* best = rows.empty() ? nullptr : measured_of(rows.front().figures.record);
  for (ResultRow& row : rows) {
    compare(row, best, metric);
    row.note = note_of(row, rows.front(), optimum);
  }
  return rows;
}

}  // namespace dstune
