// "dstune.offload": what the search may keep in the host's memory where the file does not say it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/config/space/axis.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// What lives in the host's memory, from nothing to most.
enum class OffloadLevel { none, optimizer, optimizer_and_parameters };

/// The settings of zero_optimization that make a level, which move together.
/// @param levels  at least one; of parameters in stage 3 alone
/// @param pins    pin_memory
AxisGroup offload_axes(int stage, const std::vector<OffloadLevel>& levels, bool pins);

/// When the search offloads.
enum class OffloadWhen { never, if_needed, always, levels };

struct OffloadSearch {
  OffloadWhen when = OffloadWhen::if_needed;
  bool is_given = false;             ///< by the user, so that it counts on any backend
  std::vector<OffloadLevel> levels;  ///< the user's, in his order; for OffloadWhen::levels

  /// The levels of a stage that offloads, or where the user chose them; those of stage 0 are none.
  std::vector<OffloadLevel> levels_of(int stage) const;
};

/// "never", "if_needed", "always", or a list of names of levels.
OffloadSearch read_offload_search(const json::value& value, Problems& problems);

/// Whether zero_optimization of the file, or a list of the search, says what is offloaded.
bool says_what_is_offloaded(const json::object& deepspeed, const SpaceConfig& space,
                            const std::vector<int>& stages);

}  // namespace dstune
