#include "core/report/tables/result_table.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/json.hpp"
#include "core/base/line_width.hpp"
#include "core/base/text.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/report/tables/fitted_table.hpp"
#include "core/report/tables/ranked.hpp"
#include "core/report/tables/result_columns.hpp"
#include "core/report/tables/speedup.hpp"

namespace dstune {

namespace {

std::string marks_note(const std::vector<ResultRow>& rows) {
  if (!rows.front().is_optimum) return "";
  const bool is_any = std::ranges::any_of(rows, &ResultRow::looks_better);
  return concat("* is the optimum", is_any ? "; ~ has a better number, but within noise of the "
                                             "optimum's, or from a single run that was not repeated"
                                           : "");
}

// What "+-" is, in the terms of this table.
std::string interval_note(const std::vector<ResultRow>& rows) {
  const bool is_over_steps = std::ranges::any_of(
      rows, [](const ResultRow& row) { return row.figures.interval && row.figures.runs == 1; });
  const bool is_over_runs = std::ranges::any_of(
      rows, [](const ResultRow& row) { return row.figures.interval && row.figures.runs > 1; });
  if (!is_over_steps && !is_over_runs) return "";
  std::string note = "+- is half of the 95 % interval of the step time";
  if (is_over_runs)
    note += ": over several runs, that of their mean, including what differs from run to run here";
  if (is_over_steps) {
    note += concat(is_over_runs ? "; over one run" : ":",
                   " that of the median of its steps alone, ", "so another run may differ by more");
  }
  return note;
}

// Why rows have no numbers; with --wide the table says it.
std::vector<std::string> reasons(const std::vector<ResultRow>& rows, std::size_t columns) {
  constexpr std::size_t kMostTold = 5;
  std::vector<std::string> told;
  for (const ResultRow& row : rows) {
    if (has_numbers(row)) continue;
    const Record& record = row.figures.record;
    told.push_back(
        concat(cut_in_middle(record.experiment.name, columns / 2), ": ", describe(record.outcome)));
  }
  if (told.size() <= kMostTold) return told;
  const std::size_t more = told.size() - kMostTold;
  told.resize(kMostTold);
  told.push_back(concat(more, " more have no numbers; --wide and results.csv say why"));
  return told;
}

std::string left_out_note(const FittedTable& fitted) {
  std::vector<std::string> what = fitted.left_out;
  std::erase(what, "zero");  // names begin with it
  if (fitted.has_cut_names) what.insert(what.begin(), "whole names");
  return what.empty() ? "" : concat("--wide also shows ", join(what, ", "));
}

void add_announced(const ResultRow& row, json::object& entry) {
  const Measured* figures = measured_of(row.figures.record);
  if (figures == nullptr) return;
  json::object object = {{"runs", row.figures.runs},
                         {"step_time_s", typical_step_time(*figures)},
                         {"samples_per_s", figures->samples_per_s},
                         {"tokens_per_s", figures->tokens_per_s},
                         {"flops_per_s_per_rank", figures->flops_per_s_per_rank},
                         {"peak_memory_bytes", figures->peak_memory.allocated},
                         {"versus_best", row.versus_best}};
  if (row.figures.interval) object["interval_percent"] = *row.figures.interval * 100;
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

void add_configuration(const ResultRow& row, const std::vector<ResultAxis>& axes,
                       json::object& entry) {
  add_announced(row, entry);
  json::object searched;
  for (const ResultAxis& axis : axes) {
    searched[column_name(axis)] = axis_json(axis, row.figures.record.experiment);
  }
  entry["searched"] = std::move(searched);
  if (!row.note.empty()) entry["note"] = row.note;
}

}  // namespace

std::string result_table(const std::vector<Record>& records, Metric metric,
                         const std::vector<std::string>& remarks, const Optimum& optimum, bool wide,
                         std::size_t columns) {
  if (records.empty()) return "";
  const std::vector<ResultRow> rows = result_rows(records, metric, optimum);
  const FittedTable fitted =
      fitted_table(result_columns(rows, varying_axes(records), metric, wide),
                   wide ? std::nullopt : std::optional<std::size_t>(columns));
  std::vector<std::string> notes = {marks_note(rows), interval_note(rows)};
  if (!wide) {
    for (std::string& reason : reasons(rows, columns)) notes.push_back(std::move(reason));
  }
  notes.insert(notes.end(), remarks.begin(), remarks.end());
  notes.push_back(left_out_note(fitted));
  std::erase(notes, "");
  std::string text = fitted.text;
  for (const std::string& note : notes)
    text += concat("\n", wrapped(concat("Note: ", note, "."), columns), "\n");
  return text;
}

std::string result_json(const std::vector<Record>& records, Metric metric, const Optimum& optimum,
                        const std::vector<ResultAxis>& searched) {
  const std::vector<ResultRow> rows = result_rows(records, metric, optimum);
  std::vector<ResultAxis> axes = varying_axes(records);
  add_axes(axes, searched);
  json::array all;
  for (const auto& record : ranked(records, metric, optimum.name)) {
    json::object entry = {{"name", record.experiment.name}};
    for (auto& member : to_json(record)) {
      if (member.key() != "experiment") entry[member.key()] = std::move(member.value());
    }
    json::object experiment = to_json(record.experiment);
    entry["ds_config"] = std::move(experiment["ds_config"]);
    entry["settings"] = std::move(experiment["settings"]);
    const auto row = std::ranges::find_if(rows, [&](const ResultRow& each) {
      return each.figures.record.experiment.name == record.experiment.name;
    });
    if (row != rows.end()) add_configuration(*row, axes, entry);
    entry["pareto"] = row != rows.end() && row->is_on_front;
    entry["tie"] = optimum.ties.contains(record.experiment.name);
    if (!optimum.name.empty()) entry["optimum"] = record.experiment.name == optimum.name;
    add_baseline(records, metric, optimum, record.experiment.name, entry);
    all.push_back(std::move(entry));
  }
  return to_json_text(all, 2) + "\n";
}

}  // namespace dstune
