// Bytes that a drive cannot compress or take for others, and that say where and when they were
// written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/units.hpp"

namespace dstune::host {

/// Each stretch of so many bytes has a stamp of its own.
inline constexpr Bytes kStampedBytes = 4096;

/// Fills with random bytes, the same for the same seed.
void fill_random(std::span<std::byte> bytes, std::uint64_t seed);

/// Marks `bytes`, a multiple of kStampedBytes, as those of `offset` in a file, written for the
/// `generation`-th time: the first 16 bytes of each stretch.
void stamp(std::span<std::byte> bytes, Bytes offset, std::uint64_t generation);

/// Where `found`, which was read at `offset`, begins to differ from `written`, as stamped for that
/// offset and generation, whatever stamps `written` has now.
/// @returns none if it is the same
std::optional<Bytes> find_difference(std::span<const std::byte> found,
                                     std::span<const std::byte> written, Bytes offset,
                                     std::uint64_t generation);

}  // namespace dstune::host
