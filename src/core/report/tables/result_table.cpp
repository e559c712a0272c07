#include "core/report/tables/result_table.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/report/tables/announced.hpp"
#include "core/report/tables/axes.hpp"
#include "core/report/tables/pareto.hpp"
#include "core/report/tables/speedup.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {

namespace {

std::string gibibytes(Bytes size) { return fixed(static_cast<double>(size) / 0x1p30, 2); }

bool has_in_flight(const Announced& row) {
  const Measured* measured = measured_of(row.record);
  return measured != nullptr && measured->peak_memory.in_flight() > 0;
}

bool is_reserved(const Announced& row) {
  const Measured* measured = measured_of(row.record);
  return measured != nullptr && measured->peak_memory.reserved > 0;
}

bool is_offloaded(const Announced& row) {
  const Measured* measured = measured_of(row.record);
  return measured != nullptr && measured->peak_host_memory.held > 0;
}

/// The columns that a table has besides those of every table.
struct Columns {
  bool runs = false;
  bool active = false;
  bool reserved = false;
  bool host = false;
  bool ties = false;
  bool reason = false;
  bool result = false;
};

// What "+- (%)" is, in the terms of this table.
std::string interval_note(const std::vector<Announced>& rows) {
  const bool is_over_steps =
      std::ranges::any_of(rows, [](const Announced& row) { return row.interval && row.runs == 1; });
  const bool is_over_runs =
      std::ranges::any_of(rows, [](const Announced& row) { return row.interval && row.runs > 1; });
  if (!is_over_steps && !is_over_runs) return "";
  std::string note = "+- is half of the interval of 95 % of the step time";
  if (is_over_runs)
    note += ": of more than one run, that of their mean, with what differs from run to run here";
  if (is_over_steps) {
    note += concat(is_over_runs ? "; of one run" : ":", " that of the median of its steps alone, ",
                   "so another run may differ by more");
  }
  return concat("\nNote: ", note, ".\n");
}

std::vector<std::string> numbers(const Announced& row, const Columns& with, Metric metric,
                                 double best) {
  const Measured& measured = *measured_of(row.record);
  const double value = metric_value(metric, measured);
  // How much worse than the best it is, whichever direction is better; below 1 where noise did not
  // decide.
  const double versus_best = is_better(metric, 1, 0) ? best / value : value / best;
  std::vector<std::string> cells = {
      fixed(typical_step_time(measured) * 1e3, 1),
      row.interval ? fixed(*row.interval * 100, 1) : "", fixed(measured.samples_per_s, 2),
      fixed(measured.flops_per_s_per_rank * 1e-9, 1), gibibytes(measured.peak_memory.allocated)};
  if (with.runs) cells.insert(cells.begin(), concat(row.runs));
  if (with.active) cells.push_back(gibibytes(measured.peak_memory.active));
  if (with.reserved) cells.push_back(gibibytes(measured.peak_memory.reserved));
  if (with.host) cells.push_back(gibibytes(measured.peak_host_memory.held));
  cells.push_back(fixed(versus_best, 2));
  return cells;
}

std::vector<std::string> titles(const Columns& with) {
  std::vector<std::string> all = {"step (ms)", "+- (%)", "samples/s", "GFLOP/s/rank", "peak (GiB)"};
  if (with.runs) all.insert(all.begin(), "runs");
  if (with.active) all.emplace_back("active (GiB)");
  if (with.reserved) all.emplace_back("reserved (GiB)");
  if (with.host) all.emplace_back("host (GiB)");
  all.emplace_back("vs best");
  return all;
}

std::vector<Table::Column> columns(const std::vector<ResultAxis>& axes, const Columns& with) {
  std::vector<Table::Column> all = {{"#"}, {"experiment", Table::Align::left}};
  for (const auto& axis : axes) all.push_back({axis.title, axis.align});
  for (const auto& title : titles(with)) all.push_back({title});
  if (with.ties) all.push_back({"host overhead", Table::Align::left});
  if (with.reason) all.push_back({"optimum", Table::Align::left});
  if (with.result) all.push_back({"result", Table::Align::left});
  return all;
}

auto comes_before(Metric metric) {
  return [metric](const Record& a, const Record& b) {
    const Measured* first = measured_of(a);
    const Measured* second = measured_of(b);
    if (first == nullptr || second == nullptr) return first != nullptr && second == nullptr;
    return is_better(metric, metric_value(metric, *first), metric_value(metric, *second));
  };
}

void put_first(std::vector<Record>& records, const std::string& optimum) {
  std::stable_partition(records.begin(), records.end(), [&](const Record& record) {
    return !optimum.empty() && record.experiment.name == optimum;
  });
}

void add_announced(const std::vector<Announced>& all, const Record& record, json::object& entry) {
  const auto own = std::ranges::find_if(all, [&](const Announced& each) {
    return each.record.experiment.name == record.experiment.name;
  });
  if (own == all.end() || own->runs == 0) return;
  const Measured& figures = *measured_of(own->record);
  json::object object = {{"runs", own->runs},
                         {"step_time_s", typical_step_time(figures)},
                         {"samples_per_s", figures.samples_per_s},
                         {"tokens_per_s", figures.tokens_per_s},
                         {"flops_per_s_per_rank", figures.flops_per_s_per_rank}};
  if (own->interval) object["interval_percent"] = *own->interval * 100;
  entry["announced"] = std::move(object);
}

// What the entry has to do with the user's own configuration.
void add_baseline(const std::vector<Record>& records, Metric metric, const Optimum& optimum,
                  const std::string& name, json::object& entry) {
  if (optimum.baseline.empty()) return;
  entry["is_baseline"] = name == optimum.baseline;
  if (name != optimum.name) return;
  const auto over = speedup(records, metric, name, optimum.baseline);
  if (!over) return;
  entry["speedup_over_baseline"] = over->ratio;
  if (over->interval) entry["speedup_over_baseline_interval_percent"] = *over->interval * 100;
}

}  // namespace

std::vector<Record> ranked(std::vector<Record> records, Metric metric, const std::string& optimum) {
  std::ranges::stable_sort(records, comes_before(metric));
  put_first(records, optimum);
  return records;
}

std::string result_table(const std::vector<Record>& records, Metric metric,
                         const std::vector<std::string>& remarks, const std::set<std::string>& ties,
                         const Optimum& optimum) {
  if (records.empty()) return "";
  std::vector<Announced> rows = announced(records);
  std::ranges::stable_sort(rows, comes_before(metric), &Announced::record);
  const std::string fastest = rows.front().record.experiment.name;
  std::stable_partition(rows.begin(), rows.end(), [&](const Announced& row) {
    return !optimum.name.empty() && row.record.experiment.name == optimum.name;
  });
  const std::string& first_name = rows.front().record.experiment.name;
  const Columns with{
      .runs = std::ranges::any_of(rows, [](const Announced& row) { return row.runs > 1; }),
      .active = std::ranges::any_of(rows, has_in_flight),
      .reserved = std::ranges::any_of(rows, is_reserved),
      .host = std::ranges::any_of(rows, is_offloaded),
      .ties = !ties.empty(),
      .reason = !optimum.reason.empty() && first_name != fastest,
      .result = measured_of(rows.back().record) == nullptr};
  const std::vector<ResultAxis> axes = varying_axes(records);
  const Measured* first = measured_of(rows.front().record);
  const double best = first == nullptr ? 0 : metric_value(metric, *first);
  Table table(columns(axes, with));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Record& record = rows[i].record;
    std::vector<std::string> row = {concat(i + 1), record.experiment.name};
    auto values = axis_values(axes, record.experiment);
    std::move(values.begin(), values.end(), std::back_inserter(row));
    const bool ran = measured_of(record) != nullptr;
    auto cells =
        ran ? numbers(rows[i], with, metric, best) : std::vector<std::string>(titles(with).size());
    std::move(cells.begin(), cells.end(), std::back_inserter(row));
    if (with.ties) row.emplace_back(ties.contains(record.experiment.name) ? "tie" : "");
    if (with.reason) row.push_back(i == 0 ? optimum.reason : "");
    if (with.result) row.push_back(ran ? "ran" : describe(record.outcome));
    table.add_row(std::move(row));
  }
  std::string text = table.to_string() + interval_note(rows);
  for (const auto& remark : remarks) text += concat("\nNote: ", remark, ".\n");
  return text;
}

std::string result_json(const std::vector<Record>& records, Metric metric,
                        const std::set<std::string>& ties, const Optimum& optimum) {
  const std::vector<Announced> configurations = announced(records);
  std::set<std::string> front;
  for (const auto& record : pareto_front(records_of(configurations), metric)) {
    front.insert(record.experiment.name);
  }
  json::array all;
  for (const auto& record : ranked(records, metric, optimum.name)) {
    json::object entry = {{"name", record.experiment.name}};
    for (auto& member : to_json(record)) {
      if (member.key() != "experiment") entry[member.key()] = std::move(member.value());
    }
    json::object experiment = to_json(record.experiment);
    entry["ds_config"] = std::move(experiment["ds_config"]);
    entry["settings"] = std::move(experiment["settings"]);
    if (record.experiment.repetition == 0) add_announced(configurations, record, entry);
    entry["pareto"] = front.contains(record.experiment.name);
    entry["tie"] = ties.contains(record.experiment.name);
    const bool is_optimum = record.experiment.name == optimum.name;
    if (!optimum.name.empty()) entry["optimum"] = is_optimum;
    if (is_optimum && !optimum.reason.empty()) entry["reason"] = optimum.reason;
    add_baseline(records, metric, optimum, record.experiment.name, entry);
    all.push_back(std::move(entry));
  }
  return to_json_text(all, 2) + "\n";
}

}  // namespace dstune
