// The kinds of collectives, and what a ring sends for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/units.hpp"

namespace dstune {

enum class CollectiveKind { all_reduce, reduce, reduce_scatter, all_gather, broadcast, all_to_all };

constexpr std::size_t kCollectiveKinds = 6;

std::string_view name_of(CollectiveKind kind);

/// The messages of one kind of collective. `bytes` counts the full (unsharded) messages X: what is
/// reduced, what every rank has after a gather, or what one rank gives (and gets) in an all-to-all.
struct CollectiveCount {
  std::uint64_t calls = 0;
  std::uint64_t elements = 0;
  Bytes bytes = 0;

  bool operator==(const CollectiveCount&) const = default;
};

using CollectiveCounts = std::array<CollectiveCount, kCollectiveKinds>;

/// The bytes that one rank sends for a message of `bytes` with the ring algorithm
/// (docs/deepspeed-step.md, "What is sent"): all-reduce 2 (N-1)/N X; reduce-scatter, all-gather and
/// all-to-all (N-1)/N X; reduce and broadcast X; 0 for N = 1.
double wire_bytes(CollectiveKind kind, Bytes bytes, int group_size);

}  // namespace dstune
