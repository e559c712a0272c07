// From what a user wrote for one place of the DeepSpeed JSON to the values of an axis.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/space/axis.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Values beyond this are a typing mistake.
constexpr std::size_t kLongestAxis = 1000;

/// A key of the DeepSpeed JSON.
struct KeyPlace {
  std::string pointer;               ///< aliases replaced
  const KeyRule* rule = nullptr;     ///< null: DeepSpeed leaves it to somebody else
  const Section* section = nullptr;  ///< that holds it; null as `rule`
};

/// The key at `pointer` that a space may hold.
/// @param where  what a problem names: no pointer, an unknown key, or one that the search chooses
std::optional<KeyPlace> find_key(std::string_view pointer, std::string_view where,
                                 Problems& problems);

/// A value of a list and where the user wrote it.
struct GivenValue {
  json::value value;
  std::string where;
};

/// The elements of a list at `where`.
std::vector<GivenValue> given_values(const json::array& list, std::string_view where);

/// `values`, resolved and checked for `place`; those that are wrong are problems and left out.
Axis make_axis(const KeyPlace& place, const std::vector<GivenValue>& values,
               std::int64_t hidden_size, Problems& problems);

/// What `given` says for `place`: a list, {"from", "to", "per_decade"}, {"from", "to", "step"} or
/// {"powers_of", "from", "to"}, each value once.
Axis read_axis(const KeyPlace& place, const json::value& given, std::string_view where,
               std::int64_t hidden_size, Problems& problems);

}  // namespace dstune
