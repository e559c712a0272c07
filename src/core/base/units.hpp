// Byte and time quantities, and their human-readable forms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dstune {

using Bytes = std::uint64_t;
using Seconds = double;

namespace literals {
constexpr Bytes operator""_KiB(unsigned long long count) { return count << 10U; }
constexpr Bytes operator""_MiB(unsigned long long count) { return count << 20U; }
constexpr Bytes operator""_GiB(unsigned long long count) { return count << 30U; }
}  // namespace literals

/// The text of a size, with two decimals from one KiB on: "512 B", "1.50 KiB", "4.00 GiB".
std::string format_bytes(Bytes size);

/// Reads "4GiB", "512 MiB", "1.5 GB" (GB = 1e9), "4e9" or "4096" (bytes). Units are
/// case-insensitive: B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB, and K, M, G, T (powers
/// of 1024).
/// @returns none if the text is no size, is negative, not finite, or above 2^63
std::optional<Bytes> parse_bytes(std::string_view text);

/// Reads "90s", "20 min", "1.5h", "2d" or several of them, "1h 30min". Units are case-insensitive:
/// s, min, h, d.
/// @returns none if the text is no time, as a number without a unit, a negative one or more than a
/// million days
std::optional<Seconds> parse_seconds(std::string_view text);

/// The text of a time: "850 us", "12.3 ms", "4.56 s", "3 min 20 s".
std::string format_seconds(Seconds time);

}  // namespace dstune
