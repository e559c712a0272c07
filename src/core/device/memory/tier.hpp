// Where a tensor lives.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dstune {

/// Memory of the device, or of its host. Pinned (page-locked) memory can be copied to and from a
/// device without the host's help; all other memory of the host is pageable.
enum class Tier { device, pinned, pageable };

constexpr std::size_t kTiers = 3;

std::string_view name_of(Tier tier);  ///< "device", "pinned", "pageable"
std::optional<Tier> tier_from(std::string_view name);
/// For people: "memory", "the host's memory (pinned)".
std::string_view description_of(Tier tier);

constexpr bool is_of_host(Tier tier) { return tier != Tier::device; }

}  // namespace dstune
