// A Markdown table with aligned columns.
#pragma once

#include <string>
#include <vector>

namespace dstune {

class Table {
 public:
  enum class Align { left, right };

  struct Column {
    std::string title;  ///< holds the unit: "step (ms)"
    Align align = Align::right;
  };

  /// @param columns  at least one
  explicit Table(std::vector<Column> columns);

  /// @throws std::invalid_argument  unless there is one cell per column
  void add_row(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  /// Header, rule and rows, each with a newline. Widths count characters, not bytes; "|" in a cell
  /// is escaped and line breaks become blanks, so that every row stays one row.
  std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace dstune
