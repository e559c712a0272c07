// dstune.variables and dstune.zip, checked.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Variables that one index moves.
struct VariableSet {
  std::vector<std::string> names;
  std::size_t size = 1;
};

struct Variables {
  std::map<std::string, json::array, std::less<>> values;
  std::vector<VariableSet> sets;  ///< zipped ones together, in the order of dstune.variables

  /// The set of `name`, which must be there.
  std::size_t set_of(std::string_view name) const;
};

/// A letter or _, and then digits too.
bool is_variable_name(std::string_view text);

/// @param dstune  the section; "variables" must be there
Variables read_variables(const json::object& dstune, Problems& problems);

}  // namespace dstune
