// How far two spellings are apart.
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>

namespace dstune {

/// Letters to insert, delete, replace or swap with a neighbour (the optimal string alignment
/// distance: Damerau-Levenshtein without repeated edits of a substring). Bytes are letters.
///
/// @param most  a distance above it need not be exact, only above it, and is found sooner
std::size_t edit_distance(std::string_view a, std::string_view b,
                          std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace dstune
