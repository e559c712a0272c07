#include "core/report/tables/result_table.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/report/tables/axes.hpp"
#include "core/report/tables/pareto.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {

namespace {

std::string gibibytes(Bytes size) { return fixed(static_cast<double>(size) / 0x1p30, 2); }

bool is_reserved(const Record& record) {
  const Measured* measured = measured_of(record);
  return measured != nullptr && measured->peak_memory.reserved > 0;
}

std::vector<std::string> numbers(const Measured& measured, Metric metric, double best,
                                 bool with_reserved) {
  const double value = metric_value(metric, measured);
  // How much worse than the best it is, whichever direction is better; below 1 where noise did not
  // decide.
  const double versus_best = is_better(metric, 1, 0) ? best / value : value / best;
  std::vector<std::string> cells = {
      fixed(typical_step_time(measured) * 1e3, 1), fixed(measured.step_time.noise_percent, 1),
      fixed(measured.samples_per_s, 2), fixed(measured.flops_per_s_per_rank * 1e-9, 1),
      gibibytes(measured.peak_memory.total)};
  if (with_reserved) cells.push_back(gibibytes(measured.peak_memory.reserved));
  cells.push_back(fixed(versus_best, 2));
  return cells;
}

std::vector<std::string> titles(bool with_reserved) {
  std::vector<std::string> all = {"step (ms)", "noise (%)", "samples/s", "GFLOP/s/rank",
                                  "peak (GiB)"};
  if (with_reserved) all.emplace_back("reserved (GiB)");
  all.emplace_back("vs best");
  return all;
}

std::vector<Table::Column> columns(const std::vector<ResultAxis>& axes, bool with_reserved,
                                   bool with_ties, bool with_reason, bool with_result) {
  std::vector<Table::Column> all = {{"#"}, {"experiment", Table::Align::left}};
  for (const auto& axis : axes) all.push_back({axis.title, axis.align});
  for (const auto& title : titles(with_reserved)) all.push_back({title});
  if (with_ties) all.push_back({"host overhead", Table::Align::left});
  if (with_reason) all.push_back({"optimum", Table::Align::left});
  if (with_result) all.push_back({"result", Table::Align::left});
  return all;
}

void put_first(std::vector<Record>& records, const std::string& optimum) {
  std::stable_partition(records.begin(), records.end(), [&](const Record& record) {
    return !optimum.empty() && record.experiment.name == optimum;
  });
}

}  // namespace

std::vector<Record> ranked(std::vector<Record> records, Metric metric, const std::string& optimum) {
  std::stable_sort(records.begin(), records.end(), [&](const Record& a, const Record& b) {
    const Measured* first = measured_of(a);
    const Measured* second = measured_of(b);
    if (first == nullptr || second == nullptr) return first != nullptr && second == nullptr;
    return is_better(metric, metric_value(metric, *first), metric_value(metric, *second));
  });
  put_first(records, optimum);
  return records;
}

std::string result_table(const std::vector<Record>& records, Metric metric,
                         const std::vector<std::string>& remarks, const std::set<std::string>& ties,
                         const Optimum& optimum) {
  if (records.empty()) return "";
  std::vector<Record> sorted = ranked(records, metric);
  const DeepSpeedConfig fastest = sorted.front().experiment.ds_config;
  put_first(sorted, optimum.name);
  // Repetitions are rows, so its number may be there more than once.
  const bool is_fastest = fastest == sorted.front().experiment.ds_config;
  const bool with_reason = !optimum.reason.empty() && !is_fastest;
  const std::vector<ResultAxis> axes = varying_axes(sorted);
  const bool with_result = measured_of(sorted.back()) == nullptr;
  const Measured* first = measured_of(sorted.front());
  const double best = first == nullptr ? 0 : metric_value(metric, *first);
  const bool with_reserved = std::any_of(sorted.begin(), sorted.end(), is_reserved);
  Table table(columns(axes, with_reserved, !ties.empty(), with_reason, with_result));
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    std::vector<std::string> row = {concat(i + 1), sorted[i].experiment.name};
    auto values = axis_values(axes, sorted[i].experiment);
    std::move(values.begin(), values.end(), std::back_inserter(row));
    const Measured* measured = measured_of(sorted[i]);
    auto cells = measured != nullptr ? numbers(*measured, metric, best, with_reserved)
                                     : std::vector<std::string>(titles(with_reserved).size());
    std::move(cells.begin(), cells.end(), std::back_inserter(row));
    if (!ties.empty()) row.emplace_back(ties.contains(sorted[i].experiment.name) ? "tie" : "");
    if (with_reason) row.push_back(i == 0 ? optimum.reason : "");
    if (with_result) row.push_back(measured != nullptr ? "ran" : describe(sorted[i].outcome));
    table.add_row(std::move(row));
  }
  std::string text = table.to_string();
  for (const auto& remark : remarks) text += concat("\nNote: ", remark, ".\n");
  return text;
}

std::string result_json(const std::vector<Record>& records, Metric metric,
                        const std::set<std::string>& ties, const Optimum& optimum) {
  std::set<std::string> front;
  for (const auto& record : pareto_front(records, metric)) front.insert(record.experiment.name);
  json::array all;
  for (const auto& record : ranked(records, metric, optimum.name)) {
    json::object entry = {{"name", record.experiment.name}};
    for (auto& member : to_json(record)) {
      if (member.key() != "experiment") entry[member.key()] = std::move(member.value());
    }
    json::object experiment = to_json(record.experiment);
    entry["ds_config"] = std::move(experiment["ds_config"]);
    entry["settings"] = std::move(experiment["settings"]);
    entry["pareto"] = front.contains(record.experiment.name);
    entry["tie"] = ties.contains(record.experiment.name);
    const bool is_optimum = record.experiment.name == optimum.name;
    if (!optimum.name.empty()) entry["optimum"] = is_optimum;
    if (is_optimum && !optimum.reason.empty()) entry["reason"] = optimum.reason;
    all.push_back(std::move(entry));
  }
  return to_json_text(all, 2) + "\n";
}

}  // namespace dstune
