#include "core/report/tables/fitted_table.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "core/base/line_width.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

/// The fewest characters of a name where the other columns alone are too wide.
constexpr std::size_t kShortestName = 9;

std::size_t longest(const std::vector<std::string>& cells) {
  std::size_t most = 0;
  for (const std::string& cell : cells) most = std::max(most, columns_of(cell));
  return most;
}

using Names = std::vector<std::string>;

/// The parts between "_" that all names have, without the first ones, by which a reader knows them:
/// the longest first.
std::vector<std::string> common_parts(const Names& names) {
  std::vector<std::string> common;
  const std::vector<std::string> first = split(names.front(), '_');
  for (std::size_t i = 1; i < first.size(); ++i) {
    const bool is_common = std::ranges::all_of(names, [&](const std::string& name) {
      const std::vector<std::string> parts = split(name, '_');
      return std::find(parts.begin() + 1, parts.end(), first[i]) != parts.end();
    });
    if (is_common) common.push_back(first[i]);
  }
  std::ranges::stable_sort(common, std::ranges::greater(), columns_of);
  return common;
}

/// `name` with "..." in place of these parts.
std::string without_parts(const std::string& name, const std::set<std::string>& dropped) {
  std::string text;
  bool is_gap = false;
  bool is_first = true;
  for (const std::string& part : split(name, '_')) {
    if (!is_first && dropped.contains(part)) {
      if (!std::exchange(is_gap, true)) text += "...";
      continue;
    }
    if (!is_first && !is_gap) text += '_';
    text += part;
    is_first = is_gap = false;
  }
  return text;
}

/// How names become short.
enum class Cut { in_middle, where_alike };

Names cut_names(const Names& whole, std::size_t width, Cut cut) {
  Names names = whole;
  if (cut == Cut::where_alike && !whole.empty()) {
    std::set<std::string> dropped;
    for (const std::string& part : common_parts(whole)) {
      if (longest(names) <= width) break;
      dropped.insert(part);
      std::ranges::transform(whole, names.begin(),
                             [&](const auto& name) { return without_parts(name, dropped); });
    }
  }
  for (std::string& name : names) name = cut_in_middle(name, width);
  return names;
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

/// What is shown in `width` columns.
struct Layout {
  std::vector<bool> shown;  ///< by the columns
  Names names;
};

/// How names and other columns share the room.
struct Sharing {
  std::size_t first;   ///< columns of a name that come before other columns
  std::size_t always;  ///< columns of a name that stay, if need be in a wider table
  Cut cut;
};

Layout layout_of(std::vector<FittedColumn>& columns, FittedColumn& names, const Names& whole,
                 std::size_t width, const Sharing& sharing) {
  Layout layout;
  names.cells = cut_names(whole, sharing.first, sharing.cut);
  std::size_t used = 0;
  layout.shown = shown_columns(columns, width, used);
  const std::size_t others = used - longest(names.cells);
  const std::size_t room = width > others ? width - others : 0;
  layout.names = cut_names(whole, std::max(room, sharing.always), sharing.cut);
  return layout;
}

/// Whether each row has a name, or settings, that no row of another name shows.
bool tells_apart(const std::vector<FittedColumn>& columns, const Names& whole,
                 const Layout& layout) {
  std::set<std::pair<std::vector<std::string>, std::string>> rows;
  std::set<std::vector<std::string>> looks;
  for (std::size_t row = 0; row < whole.size(); ++row) {
    std::vector<std::string> look = {layout.names[row]};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (layout.shown[i] && columns[i].is_setting) look.push_back(columns[i].cells[row]);
    }
    looks.insert(look);
    rows.emplace(std::move(look), whole[row]);
  }
  return looks.size() == rows.size();
}

/// The first of the ways to share the room in which rows can be told apart.
Layout best_layout(std::vector<FittedColumn>& columns, FittedColumn& names, std::size_t width) {
  const Names whole = names.cells;
  std::vector<Sharing> ways = {{kLeastName, kShortestName, Cut::in_middle}};
  for (const std::size_t first : {kLeastName, std::size_t{17}, kShortestName}) {
    ways.push_back({first, kShortestName, Cut::where_alike});
  }
  for (std::size_t more = kShortestName + 1; more <= longest(whole); ++more) {
    ways.push_back({more, more, Cut::where_alike});
  }
  Layout layout;
  for (const Sharing& way : ways) {
    layout = layout_of(columns, names, whole, width, way);
    if (tells_apart(columns, whole, layout)) break;
  }
  return layout;
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
    std::vector<bool> shown;
    if (names == columns.end()) {
      std::size_t used = 0;
      shown = shown_columns(columns, *width, used);
    } else {
      const Names whole = names->cells;
      Layout layout = best_layout(columns, *names, *width);
      fitted.has_cut_names = layout.names != whole;
      names->cells = std::move(layout.names);
      shown = std::move(layout.shown);
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
