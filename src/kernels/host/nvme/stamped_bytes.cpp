#include "kernels/host/nvme/stamped_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/parallel.hpp"

namespace dstune::host {
namespace {

using Stamp = std::array<std::uint64_t, 2>;

/// The finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014).
std::uint64_t mix(std::uint64_t state) {
  state = (state ^ (state >> 30U)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27U)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31U);
}

}  // namespace

void fill_random(std::span<std::byte> bytes, std::uint64_t seed) {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  for_each_in_parallel((bytes.size() + kPiece - 1) / kPiece, [&](std::size_t piece) {
    const auto part =
        bytes.subspan(piece * kPiece).first(std::min(kPiece, bytes.size() - piece * kPiece));
    for (std::size_t at = 0; at < part.size(); at += kWord) {
      const std::uint64_t number = (piece * kPiece + at) / kWord;
      const std::uint64_t word = mix(mix(seed) + 0x9E3779B97F4A7C15U * (number + 1));
      std::memcpy(&part[at], &word, std::min(kWord, part.size() - at));
    }
  });
}

void stamp(std::span<std::byte> bytes, Bytes offset, std::uint64_t generation) {
  for (Bytes at = 0; at < bytes.size(); at += kStampedBytes) {
    const Stamp stamp{offset + at, generation};
    std::memcpy(&bytes[at], stamp.data(), sizeof stamp);
  }
}

std::optional<Bytes> find_difference(std::span<const std::byte> found,
                                     std::span<const std::byte> written, Bytes offset,
                                     std::uint64_t generation) {
  for (Bytes at = 0; at < found.size(); at += kStampedBytes) {
    const Stamp expected{offset + at, generation};
    const Bytes begin = at + sizeof expected;
    if (std::memcmp(&found[at], expected.data(), sizeof expected) != 0 ||
        std::memcmp(&found[begin], &written[begin], kStampedBytes - sizeof expected) != 0) {
      return at;
    }
  }
  return std::nullopt;
}

}  // namespace dstune::host
