#include "core/report/tables/result_columns.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "core/base/line_width.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

/// The order in which columns get the room that is left; other settings follow from kOther on.
constexpr int kMicroBatch = 0;
constexpr int kAccumulation = 1;
constexpr int kRuns = 2;
constexpr int kHost = 3;
constexpr int kDrive = 4;
constexpr int kReserved = 5;
constexpr int kOther = 6;
constexpr int kStage = 1000;
constexpr int kActive = 1001;

using NumberOf = std::function<double(const ResultRow&)>;

/// How the numbers of a column are shown.
struct Unit {
  double size = 1;  ///< of one of it
  const char* name = "";
  int decimals = 0;
};

const Measured& numbers(const ResultRow& row) { return *measured_of(row.figures.record); }

double first_number(const std::vector<ResultRow>& rows, const NumberOf& number_of) {
  const auto first = std::ranges::find_if(rows, has_numbers);
  return first == rows.end() ? 0 : number_of(*first);
}

/// The largest of the units of which the column's first number is at least `least`, with as many
/// decimals as give that number `digits` significant digits.
Unit unit_of(const std::vector<ResultRow>& rows, const NumberOf& number_of, int digits,
             const std::vector<Unit>& units, double least = 1) {
  const double first = first_number(rows, number_of);
  const auto found =
      std::ranges::find_if(units, [&](const Unit& unit) { return first >= least * unit.size; });
  Unit unit = found == units.end() ? units.back() : *found;
  unit.decimals = decimals_of(first / unit.size, digits);
  return unit;
}

FittedColumn number_column(const char* title, const std::vector<ResultRow>& rows, const Unit& unit,
                           const NumberOf& number_of) {
  Table::Column head{title, Table::Align::right, unit.name};
  FittedColumn column{.head = std::move(head)};
  for (const ResultRow& row : rows) {
    column.cells.push_back(has_numbers(row) ? fixed(number_of(row) / unit.size, unit.decimals)
                                            : "");
  }
  return column;
}

/// A word for what has no numbers.
const char* word_of(const Outcome& outcome) {
  if (std::holds_alternative<OutOfMemory>(outcome)) return "OOM";
  return std::holds_alternative<Skipped>(outcome) ? "skipped" : "failed";
}

FittedColumn text_column(Table::Column head, const std::vector<ResultRow>& rows,
                         const std::function<std::string(const ResultRow&)>& text_of) {
  FittedColumn column{.head = std::move(head)};
  for (const ResultRow& row : rows) column.cells.push_back(text_of(row));
  return column;
}

void add_names(std::vector<FittedColumn>& columns, const std::vector<ResultRow>& rows) {
  FittedColumn places{.head = {"#"}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const char* mark = rows[i].is_optimum ? "*" : rows[i].looks_better ? "~" : "";
    places.cells.push_back(concat(mark, i + 1));
  }
  columns.push_back(std::move(places));
  columns.push_back(text_column({"experiment", Table::Align::left}, rows, [](const auto& row) {
    return row.figures.record.experiment.name;
  }));
  columns.back().is_name = true;
}

/// A whole number of five digits or more in a shorter form that is as exact: "5e7".
std::string shorter_number(const std::string& text) {
  const bool is_long = text.size() > 4;
  const bool is_number = text.find_first_not_of("0123456789.eE+") == std::string::npos;
  if (!is_long || !is_number) return text;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || value < 1e5) return text;
  for (int digits = 0; digits < 4; ++digits) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.*e", digits, value);
    if (std::strtod(buffer, nullptr) != value) continue;
    const std::vector<std::string> parts = split(buffer, 'e');
    const std::string shorter = concat(parts[0], "e", std::atoi(parts[1].c_str()));
    return shorter.size() < text.size() ? shorter : text;
  }
  return text;
}

/// The title of a setting in two rows, broken where these are shortest.
Table::Column head_of(const ResultAxis& axis) {
  if (axis.title == "zero") return {"zero", axis.align, "stage"};
  if (axis.title == "micro batch") return {"micro", axis.align, "batch"};
  if (axis.title == "accumulate") return {"gas", axis.align};
  constexpr std::size_t kShort = 8;
  const std::string& title = axis.title;
  std::size_t after = title.size();
  for (std::size_t i = 1; i < title.size() && title.size() > kShort; ++i) {
    const bool may_break = title[i - 1] == '_' || title[i - 1] == '.';
    const auto longer = [&](std::size_t at) { return std::max(at, title.size() - at); };
    if (may_break && longer(i) < longer(after)) after = i;
  }
  return {title.substr(0, after), axis.align, title.substr(after)};
}

int order_of(const ResultAxis& axis, std::size_t index) {
  if (axis.title == "zero") return kStage;  // the names begin with it
  if (axis.title == "micro batch") return kMicroBatch;
  if (axis.title == "accumulate") return kAccumulation;
  return kOther + static_cast<int>(index);
}

void add_settings(std::vector<FittedColumn>& columns, const std::vector<ResultRow>& rows,
                  const std::vector<ResultAxis>& axes, bool wide) {
  constexpr std::size_t kLongestValue = 20;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    FittedColumn column = text_column(head_of(axes[i]), rows, [&](const ResultRow& row) {
      const auto value = shorter_number(axis_value(axes[i], row.figures.record.experiment));
      return wide ? value : cut_in_middle(value, kLongestValue);
    });
    column.order = order_of(axes[i], i);
    column.is_setting = true;
    column.what = axes[i].title;
    columns.push_back(std::move(column));
  }
  if (std::ranges::any_of(rows, [](const auto& row) { return row.figures.runs > 1; })) {
    columns.push_back(text_column({"runs"}, rows, [](const ResultRow& row) {
      return row.figures.runs > 0 ? concat(row.figures.runs) : "";
    }));
    columns.back().order = kRuns;
    columns.back().what = "runs";
  }
}

void add_speed(std::vector<FittedColumn>& columns, const std::vector<ResultRow>& rows,
               Metric metric) {
  const NumberOf step = [](const ResultRow& row) { return typical_step_time(numbers(row)); };
  columns.push_back(number_column("step", rows, unit_of(rows, step, 4, {{1e-3, "ms"}}), step));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!has_numbers(rows[i])) columns.back().cells[i] = word_of(rows[i].figures.record.outcome);
  }
  columns.push_back(text_column({"+-", Table::Align::right, "%"}, rows, [](const ResultRow& row) {
    return row.figures.interval ? fixed(*row.figures.interval * 100, 1) : "";
  }));
  const bool counts_tokens = metric == Metric::tokens;
  const NumberOf amount = [counts_tokens](const ResultRow& row) {
    return counts_tokens ? numbers(row).tokens_per_s : numbers(row).samples_per_s;
  };
  columns.push_back(number_column(counts_tokens ? "tokens" : "samples", rows,
                                  unit_of(rows, amount, 4, {{1, "/s"}}), amount));
  const NumberOf flops = [](const ResultRow& row) { return numbers(row).flops_per_s_per_rank; };
  Unit unit = unit_of(rows, flops, 3, {{1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1e6, "MFLOP/s"}});
  const char* const title = std::exchange(unit.name, "/rank");
  columns.push_back(number_column(title, rows, unit, flops));
}

void add_memory(std::vector<FittedColumn>& columns, const std::vector<ResultRow>& rows) {
  const NumberOf peak = [](const ResultRow& row) {
    return static_cast<double>(numbers(row).peak_memory.allocated);
  };
  const Unit unit =
      unit_of(rows, peak, 3, {{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}}, 0.1);
  columns.push_back(number_column("peak", rows, unit, peak));
  const auto add_if_any = [&](const char* title, int order, const NumberOf& number_of,
                              const NumberOf& matters) {
    const bool is_any = std::ranges::any_of(
        rows, [&](const ResultRow& row) { return has_numbers(row) && matters(row) > 0; });
    if (!is_any) return;
    columns.push_back(number_column(title, rows, unit, number_of));
    columns.back().order = order;
    columns.back().what = title;
  };
  const auto bytes = [](Bytes size) { return static_cast<double>(size); };
  add_if_any(
      "active", kActive, [&](const auto& row) { return bytes(numbers(row).peak_memory.active); },
      [&](const auto& row) { return bytes(numbers(row).peak_memory.in_flight()); });
  const NumberOf reserved = [&](const auto& row) {
    return bytes(numbers(row).peak_memory.reserved);
  };
  add_if_any("reserved", kReserved, reserved, reserved);
  const NumberOf host = [&](const auto& row) { return bytes(numbers(row).peak_host_memory.held); };
  add_if_any("host", kHost, host, host);
  const NumberOf drive = [&](const auto& row) {
    return bytes(numbers(row).peak_host_memory.drive);
  };
  add_if_any("drive", kDrive, drive, drive);
}

void add_verdicts(std::vector<FittedColumn>& columns, const std::vector<ResultRow>& rows,
                  bool wide) {
  columns.push_back(text_column({"vs", Table::Align::right, "best"}, rows, [](const auto& row) {
    return has_numbers(row) ? fixed(row.versus_best, 2) : "";
  }));
  if (!wide) return;
  columns.push_back(text_column({"pareto", Table::Align::left}, rows,
                                [](const auto& row) { return row.is_on_front ? "yes" : ""; }));
  if (std::ranges::any_of(rows, [](const auto& row) { return !row.note.empty(); })) {
    columns.push_back(text_column({"note", Table::Align::left}, rows,
                                  [](const ResultRow& row) { return row.note; }));
  }
  if (std::ranges::all_of(rows, has_numbers)) return;
  columns.push_back(text_column({"result", Table::Align::left}, rows, [](const ResultRow& row) {
    return has_numbers(row) ? "ran" : describe(row.figures.record.outcome);
  }));
}

}  // namespace

int decimals_of(double value, int digits) {
  constexpr int kMost = 6;
  if (!(value > 0) || !std::isfinite(value)) return 0;
  return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(value))), 0, kMost);
}

std::vector<FittedColumn> result_columns(const std::vector<ResultRow>& rows,
                                         const std::vector<ResultAxis>& axes, Metric metric,
                                         bool wide) {
  std::vector<FittedColumn> columns;
  add_names(columns, rows);
  add_settings(columns, rows, axes, wide);
  add_speed(columns, rows, metric);
  add_memory(columns, rows);
  add_verdicts(columns, rows, wide);
  return columns;
}

}  // namespace dstune
