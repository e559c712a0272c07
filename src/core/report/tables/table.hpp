// A Markdown table with aligned columns.
#pragma once

#include <string>
#include <vector>

namespace dstune {

class Table {
 public:
  enum class Align { left, right };

  struct Column {
    std::string title;  ///< holds the unit, "step (ms)", unless `unit` does
    Align align = Align::right;
    std::string unit = {};  ///< "ms", in a row of its own
  };

  /// @param columns  at least one
  explicit Table(std::vector<Column> columns);

  /// @throws std::invalid_argument  unless there is one cell per column
  void add_row(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  /// Header, rule and rows, each with a newline. Where a column has a unit, the first row under the
  /// rule has the units, since Markdown knows one row of titles. Widths count characters, not
  /// bytes;
  /// "|" in a cell is escaped and line breaks become blanks, so that every row stays one row.
  std::string to_string() const;

  /// The columns that a column with this head and these cells takes, its share of the bars
  /// included.
  static std::size_t width_of(const Column& head, const std::vector<std::string>& cells);
  /// The columns of a table that has none.
  static constexpr std::size_t kWidthOfBar = 1;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace dstune
