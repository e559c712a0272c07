// Lists of what a build has several of, each on one line: #define LIST(X) X(name, facts...) ...
#pragma once

#include <cstddef>
#include <string_view>

namespace dstune {

/// LIST(DSTUNE_LISTED_NAME) expands to the enumerators.
#define DSTUNE_LISTED_NAME(name, ...) name,

/// LIST(DSTUNE_LISTED_CHOICE) expands to the literal "|name|name", which without its first letter
/// is an argument of rules::choice().
#define DSTUNE_LISTED_CHOICE(name, ...) "|" #name

/// {LIST(DSTUNE_LISTED_ROW)} is an array of a struct whose first member is `name`; the facts name
/// its other members.
#define DSTUNE_LISTED_ROW(row, ...) {.name = #row, __VA_ARGS__},

/// The row of this name; nullptr if there is none.
template <class Row, std::size_t kRows>
constexpr const Row* find_row(const Row (&rows)[kRows], std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace dstune
