// What a build has several of, each on one line of a list: #define LIST(X) X(name, facts...) ...
#pragma once

#include <cstddef>
#include <string_view>

namespace dstune {

/// LIST(DSTUNE_LISTED_NAME) is its enumerators.
#define DSTUNE_LISTED_NAME(name, ...) name,

/// LIST(DSTUNE_LISTED_CHOICE) is the literal "|name|name", as rules::choice() takes it but for the
/// first letter.
#define DSTUNE_LISTED_CHOICE(name, ...) "|" #name

/// {LIST(DSTUNE_LISTED_ROW)} is an array of a struct that begins with `name`; the facts name its
/// other members.
#define DSTUNE_LISTED_ROW(row, ...) {.name = #row, __VA_ARGS__},

/// nullptr if no row has that name.
template <class Row, std::size_t kRows>
constexpr const Row* find_row(const Row (&rows)[kRows], std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace dstune
