// "dstune.offload": what the search may keep in the host's memory or on a drive where the file does
// not say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/space/axis.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// What does not live on the device, from nothing to what spares most memory: in the host's memory,
/// or, where the name says so, on a drive with the parameters in the host's memory.
enum class OffloadLevel { none, optimizer, optimizer_and_parameters, optimizer_on_nvme };

bool uses_drive(OffloadLevel level);
bool has_parameters(OffloadLevel level);  ///< not on the device

/// The elements of a sub-group with a drive. DeepSpeed's default, 1e9, locks 16 GB of the host's
/// memory for each rank, since each of the four buffers of Adam holds a sub-group in fp32; of 1e8
/// they are 1.6 GB, in requests that are large enough for any drive.
inline constexpr std::int64_t kUsualSubGroup = 100'000'000;
/// Where even that is too much: 160 MB.
inline constexpr std::int64_t kSmallSubGroup = 10'000'000;

/// How a level is set.
struct OffloadSettings {
  bool pins = true;                              ///< pin_memory
  std::string nvme_path = {};                    ///< of levels that use a drive
  std::int64_t sub_group_size = kUsualSubGroup;  ///< of levels that use a drive; 0: the file's
};

/// The settings of zero_optimization that make a level, which move together. Where some of the
/// levels use a drive, the others have DeepSpeed's defaults of what belongs to it.
/// @param levels  at least one, of the stage
AxisGroup offload_axes(int stage, const std::vector<OffloadLevel>& levels,
                       const OffloadSettings& settings);

/// When the search offloads.
enum class OffloadWhen { never, if_needed, always, levels };

struct OffloadSearch {
  OffloadWhen when = OffloadWhen::if_needed;
  bool is_given = false;             ///< by the user, so that it counts on any backend
  std::vector<OffloadLevel> levels;  ///< the user's, in his order; for OffloadWhen::levels
  std::string nvme_path = {};        ///< dstune.nvme_path, a directory; "": no drive is used

  /// The levels of a stage that offloads, or where the user chose them; those of stage 0 are none.
  /// A drive, which is slow and wears, is among them if it is needed at most.
  std::vector<OffloadLevel> levels_of(int stage) const;
};

/// "never", "if_needed", "always", or a list of names of levels.
OffloadSearch read_offload_search(const json::value& value, Problems& problems);

/// A level that uses a drive needs the drive's directory.
void check_drive(const OffloadSearch& search, Problems& problems);

/// Whether zero_optimization of the file, or a list of the search, says what is offloaded.
bool says_what_is_offloaded(const json::object& deepspeed, const SpaceConfig& space,
                            const std::vector<int>& stages);

}  // namespace dstune
