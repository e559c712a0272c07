// Where a tensor lives.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dstune {

/// Memory of the device, or of its host, or a file on a drive. Pinned memory of the host is known
/// to the device, which can copy it without the host's help. Locked memory only stays where it is,
/// as a drive needs it that reads and writes it directly; to a device it is like pageable memory,
/// which is all other memory of the host.
enum class Tier { device, pinned, pageable, locked, nvme };

constexpr std::size_t kTiers = 5;

std::string_view name_of(Tier tier);  ///< "device", "pinned", "pageable", "locked", "nvme"
std::optional<Tier> tier_from(std::string_view name);
/// For people: "memory", "the host's memory (pinned)", "space on the drive".
std::string_view description_of(Tier tier);

constexpr bool is_of_host(Tier tier) { return tier != Tier::device && tier != Tier::nvme; }

}  // namespace dstune
