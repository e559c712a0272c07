#include "core/report/tables/table.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::size_t kShortestRule = 3;  // "---" and "--:": Markdown's minimum

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;  // not a UTF-8 continuation
  }));
}

std::string cell_text(std::string_view text) {
  std::string cell;
  for (const char letter : text) {
    if (letter == '|') cell += '\\';
    cell += letter == '\n' || letter == '\r' || letter == '\t' ? ' ' : letter;
  }
  return cell;
}

std::string padded(const std::string& text, std::size_t width, Table::Align align) {
  const std::string blanks(width - characters(text), ' ');
  return align == Table::Align::left ? text + blanks : blanks + text;
}

std::string rule(std::size_t width, Table::Align align) {
  return align == Table::Align::left ? std::string(width, '-') : std::string(width - 1, '-') + ":";
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  if (columns_.empty()) throw std::invalid_argument("Table: no columns");
  for (auto& column : columns_) column.title = cell_text(column.title);
}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument(
        concat("Table: a row of ", cells.size(), " cells for ", columns_.size(), " columns"));
  }
  for (auto& cell : cells) cell = cell_text(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::to_string() const {
  std::vector<std::string> header;
  std::vector<std::string> rules;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = std::max(kShortestRule, characters(columns_[i].title));
    for (const auto& row : rows_) width = std::max(width, characters(row[i]));
    header.push_back(columns_[i].title);
    rules.push_back(rule(width, columns_[i].align));
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
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace dstune
