#include "core/report/tables/table.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/line_width.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::size_t kShortestRule = 3;  // "---" and "--:": Markdown's minimum
constexpr std::size_t kAroundCell = 3;    // "| " before it and " " after it

std::string cell_text(std::string_view text) {
  std::string cell;
  for (const char letter : text) {
    if (letter == '|') cell += '\\';
    cell += letter == '\n' || letter == '\r' || letter == '\t' ? ' ' : letter;
  }
  return cell;
}

std::string padded(const std::string& text, std::size_t width, Table::Align align) {
  const std::string blanks(width - columns_of(text), ' ');
  return align == Table::Align::left ? text + blanks : blanks + text;
}

std::string rule(std::size_t width, Table::Align align) {
  return align == Table::Align::left ? std::string(width, '-') : std::string(width - 1, '-') + ":";
}

std::size_t width_of_cells(const Table::Column& head, const std::vector<std::string>& cells) {
  std::size_t width = std::max({kShortestRule, columns_of(head.title), columns_of(head.unit)});
  for (const auto& cell : cells) width = std::max(width, columns_of(cell));
  return width;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  if (columns_.empty()) throw std::invalid_argument("Table: no columns");
  for (auto& column : columns_) {
    column.title = cell_text(column.title);
    column.unit = cell_text(column.unit);
  }
}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument(
        concat("Table: a row of ", cells.size(), " cells for ", columns_.size(), " columns"));
  }
  for (auto& cell : cells) cell = cell_text(cell);
  rows_.push_back(std::move(cells));
}

std::size_t Table::width_of(const Column& head, const std::vector<std::string>& cells) {
  std::vector<std::string> shown;
  shown.reserve(cells.size());
  for (const auto& cell : cells) shown.push_back(cell_text(cell));
  return width_of_cells(head, shown) + kAroundCell;
}

std::string Table::to_string() const {
  std::vector<std::string> header;
  std::vector<std::string> rules;
  std::vector<std::string> units;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::vector<std::string> cells;
    for (const auto& row : rows_) cells.push_back(row[i]);
    const std::size_t width = width_of_cells(columns_[i], cells);
    header.push_back(columns_[i].title);
    rules.push_back(rule(width, columns_[i].align));
    units.push_back(columns_[i].unit);
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    text += "|";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += concat(" ", padded(cells[i], widths[i], columns_[i].align), " |");
    }
    text += "\n";
  };
  add_line(header);
  add_line(rules);
  const bool has_units = std::ranges::any_of(units, [](const auto& unit) { return !unit.empty(); });
  if (has_units) add_line(units);
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace dstune
