#include "core/train/draw_lengths.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/train/batch_context.hpp"

namespace dstune {

namespace {

constexpr std::uint64_t kLengths = 0x6c656e67746873;
constexpr unsigned kBitsOfARow = 20;

/// @returns a number in [0, 1)
double fraction_of(std::uint64_t bits) { return static_cast<double>(bits >> 11U) * 0x1p-53; }

std::int64_t of_histogram(const std::vector<LengthCount>& counts, double u) {
  std::int64_t total = 0;
  for (const LengthCount& each : counts) total += each.count;
  auto left = static_cast<std::int64_t>(u * static_cast<double>(total));
  for (const LengthCount& each : counts) {
    if (left < each.count) return each.length;
    left -= each.count;
  }
  return counts.back().length;
}

double lognormal(const LengthSettings& settings, double u, double v) {
  const double z = std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::numbers::pi * v);
  const double mu = std::log(settings.mean) - settings.sigma * settings.sigma / 2;
  return std::exp(mu + settings.sigma * z);
}

// A double may be larger than all integers.
std::int64_t whole(double length, std::int64_t most) {
  return length >= static_cast<double>(most) ? most
                                             : static_cast<std::int64_t>(std::floor(length + 0.5));
}

std::int64_t draw(const LengthSettings& settings, std::uint64_t bits) {
  const double u = fraction_of(bits);
  switch (settings.law) {
    case LengthLaw::histogram:
      return of_histogram(settings.counts, u);
    case LengthLaw::lognormal:
      return whole(lognormal(settings, u, fraction_of(seed_of(bits))), settings.most);
    case LengthLaw::uniform: {
      const auto lengths = static_cast<double>(settings.most - settings.least + 1);
      return settings.least + static_cast<std::int64_t>(u * lengths);
    }
    case LengthLaw::fixed:
      break;
  }
  return settings.most;
}

RowLengths padded(const LengthSettings& settings, const std::vector<std::int64_t>& lengths) {
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  RowLengths rows{static_cast<std::int64_t>(lengths.size()), settings.padded(longest)};
  const bool fills = std::all_of(lengths.begin(), lengths.end(),
                                 [&](std::int64_t length) { return length == rows.length; });
  for (std::size_t i = 0; !fills && i < lengths.size(); ++i) {
    rows.sequences.push_back({static_cast<std::int64_t>(i) * rows.length, lengths[i]});
  }
  return rows;
}

/// @param length_of  gives the length of the n-th sequence of a row
template <class LengthOf>
RowLengths packed(std::int64_t count, std::int64_t row_length, LengthOf length_of) {
  RowLengths rows{.length = count * row_length, .is_packed = true};
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t end = (row + 1) * row_length;
    std::int64_t begin = row * row_length;
    for (std::uint64_t n = 0; begin < end; ++n) {
      const std::int64_t length = std::min<std::int64_t>(length_of(row, n), end - begin);
      rows.sequences.push_back({begin, length});
      begin += length;
    }
  }
  return rows;
}

std::int64_t second_longest(const LengthSettings& settings) {
  std::int64_t second = settings.least;
  if (settings.law != LengthLaw::histogram) return std::max(second, settings.most - 1);
  for (const LengthCount& each : settings.counts) {
    if (each.length < settings.most) second = std::max(second, each.length);
  }
  return second;
}

}  // namespace

std::int64_t draw_length(const LengthSettings& settings, std::uint64_t seed, std::uint64_t index) {
  assert(settings.varies());
  const std::uint64_t bits = seed_of(seed_of(seed_of(seed) ^ kLengths) ^ index);
  return std::clamp(draw(settings, bits), settings.least, settings.most);
}

RowLengths draw_rows(const LengthSettings& settings, std::uint64_t seed, std::uint64_t first,
                     std::int64_t count, std::int64_t row_length) {
  if (settings.is_packed) {
    return packed(count, row_length, [&](std::int64_t row, std::uint64_t n) {
      const std::uint64_t place = first + static_cast<std::uint64_t>(row);
      return draw_length(settings, seed, (place << kBitsOfARow) + n);
    });
  }
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(count));
  for (std::int64_t& length : lengths) length = draw_length(settings, seed, first++);
  return padded(settings, lengths);
}

RowLengths longest_rows(const LengthSettings& settings, std::int64_t count,
                        std::int64_t row_length) {
  if (settings.is_packed) {
    return packed(count, row_length,
                  [&](std::int64_t /*row*/, std::uint64_t /*n*/) { return settings.most; });
  }
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), settings.most);
  if (count > 1) lengths.back() = second_longest(settings);
  return padded(settings, lengths);
}

}  // namespace dstune
