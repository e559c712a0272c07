// A table that is no wider than a line: the columns that matter most, and names cut so that rows
// can be told apart.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/report/tables/table.hpp"

namespace dstune {

/// A column with its cells, which is shown if there is room.
struct FittedColumn {
  Table::Column head = {};
  std::vector<std::string> cells = {};  ///< one for each row
  std::optional<int> order =
      {};                   ///< of two columns the smaller one gets the room; none: always shown
  bool is_name = false;     ///< the one column whose cells may be cut
  bool is_setting = false;  ///< its cells tell configurations apart, as names do
  std::string what = {};    ///< how the reader knows it if it is left out
};

struct FittedTable {
  std::string text;                   ///< Table::to_string()
  std::vector<std::string> left_out;  ///< FittedColumn::what of those without room
  bool has_cut_names = false;
};

/// The columns in the order in which they are given, those with an `order` as far as the table then
/// has at most `width` characters in a line. Names keep kLeastName characters before others get
/// room, and get what is left; numbers are never cut. Where two rows would show the same cut name,
/// and no setting that is shown tells them apart, names lose what all of them have in common, then
/// room to settings, and if that does not help either they get the room that tells them apart, in
/// a table that may be wider.
/// @param width  none: everything, as it is
FittedTable fitted_table(std::vector<FittedColumn> columns, std::optional<std::size_t> width);

/// The characters of a name that are worth more than another column.
inline constexpr std::size_t kLeastName = 25;

}  // namespace dstune
