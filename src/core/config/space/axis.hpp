// The dimensions of a user's search space, checked.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"

namespace dstune {

/// One place of the DeepSpeed JSON and what it may hold, in the user's order.
struct Axis {
  std::string pointer;              ///< "/zero_optimization/reduce_bucket_size"
  std::vector<json::value> values;  ///< normalised, as check_value() does: integers are integers
  std::vector<json::value> spelt = {};  ///< as the file spells them, which names show; or empty
};

/// Axes that move together: all have as many values, and one index chooses in each.
struct AxisGroup {
  std::vector<Axis> tied;

  std::size_t size() const { return tied.empty() ? 1 : tied.front().values.size(); }
};

/// What a user wants searched beside stages and micro-batches.
struct SpaceConfig {
  std::vector<AxisGroup> all_stages;               ///< lists of the file, dstune.space, variables
  std::map<int, std::vector<AxisGroup>> of_stage;  ///< "z3": {...}
  bool with_default = false;                       ///< our own space too
  bool with_deepspeeds = false;                    ///< DeepSpeed's default spaces too
  bool prune_dominated = false;
  bool has_lists = false;      ///< the file itself has lists or variables, beside dstune.space
  std::set<std::string> open;  ///< pointers that are "auto" in the file: default spaces may choose

  bool empty() const {
    return all_stages.empty() && of_stage.empty() && !with_default && !with_deepspeeds;
  }
  /// The axes of `stage`: those of all stages and its own, which win where both name a place.
  std::vector<AxisGroup> axes_of(int stage) const;
};

/// The keys of a JSON pointer (RFC 6901): {"a", "b/c"} of "/a/b~1c".
std::vector<std::string> keys_of(std::string_view pointer);

/// The value at `keys`; null pointer if there is none. Indices lead into lists.
json::value* find_at(json::value& root, const std::vector<std::string>& keys);

/// Puts `value` at `keys`, with the objects on the way to it.
void set_at(json::object& root, const std::vector<std::string>& keys, const json::value& value);

}  // namespace dstune
