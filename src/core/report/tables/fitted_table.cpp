#include "core/report/tables/fitted_table.hpp"

#include <algorithm>
#include <utility>

#include "core/base/line_width.hpp"

namespace dstune {
namespace {

/// The fewest characters of a name where the other columns alone are too wide.
constexpr std::size_t kShortestName = 9;

std::size_t longest(const std::vector<std::string>& cells) {
  std::size_t most = 0;
  for (const std::string& cell : cells) most = std::max(most, columns_of(cell));
  return most;
}

void cut_names(FittedColumn& names, std::size_t width) {
  for (std::string& name : names.cells) name = cut_in_middle(name, width);
}

/// The columns for which there is room, by their indices.
std::vector<bool> shown_columns(const std::vector<FittedColumn>& columns, std::size_t width,
                                std::size_t& used) {
  std::vector<bool> shown(columns.size());
  std::vector<std::size_t> optional;
  used = Table::kWidthOfBar;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    shown[i] = !columns[i].order;
    if (shown[i]) used += Table::width_of(columns[i].head, columns[i].cells);
    if (!shown[i]) optional.push_back(i);
  }
  std::ranges::stable_sort(optional, {}, [&](std::size_t i) { return *columns[i].order; });
  for (const std::size_t i : optional) {
    const std::size_t more = Table::width_of(columns[i].head, columns[i].cells);
    if (used + more > width) continue;
    used += more;
    shown[i] = true;
  }
  return shown;
}

std::string table_of(const std::vector<FittedColumn>& columns) {
  std::vector<Table::Column> heads;
  heads.reserve(columns.size());
  for (const FittedColumn& column : columns) heads.push_back(column.head);
  Table table(std::move(heads));
  for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
    std::vector<std::string> cells;
    cells.reserve(columns.size());
    for (const FittedColumn& column : columns) cells.push_back(column.cells[row]);
    table.add_row(std::move(cells));
  }
  return table.to_string();
}

}  // namespace

FittedTable fitted_table(std::vector<FittedColumn> columns, std::optional<std::size_t> width) {
  FittedTable fitted;
  if (width) {
    const auto names = std::ranges::find(columns, true, &FittedColumn::is_name);
    const bool has_names = names != columns.end();
    const std::vector<std::string> whole = has_names ? names->cells : std::vector<std::string>();
    if (has_names) cut_names(*names, kLeastName);
    std::size_t used = 0;
    const std::vector<bool> shown = shown_columns(columns, *width, used);
    if (has_names) {
      const std::size_t kept = longest(names->cells);
      names->cells = whole;
      const std::size_t others = used - kept;
      const std::size_t room = *width > others ? *width - others : 0;
      cut_names(*names, std::max(room, kShortestName));
      fitted.has_cut_names = names->cells != whole;
    }
    std::vector<FittedColumn> kept;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!shown[i]) fitted.left_out.push_back(columns[i].what);
      if (shown[i]) kept.push_back(std::move(columns[i]));
    }
    columns = std::move(kept);
  }
  fitted.text = table_of(columns);
  return fitted;
}

}  // namespace dstune
