// The queues of a device, and the points in them that others wait for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/units.hpp"

namespace dstune {

/// Work that is queued on one stream runs in that order; two streams are ordered by events alone. A
/// CPU runs all at once, in call order.
enum class Stream {
  compute,        ///< forward, backward, the update
  reduction,      ///< of gradients, with overlap_comm
  gather,         ///< of parameters in stage 3, with overlap_comm
  communication,  ///< where every collective runs, as NCCL's own stream in PyTorch
};

constexpr std::size_t kStreams = 4;

/// By stream: how many events of it are known to have passed.
using StreamClock = std::array<std::uint64_t, kStreams>;

/// A point in a stream; a default-constructed one has always passed.
struct Event {
  StreamClock after{};  ///< what has passed when this has, itself included
  Seconds time = 0;     ///< by devices that know it at once: see Device::time_of()
  /// The hardware's own event, where there is one: its device uses it again when the last copy of
  /// this is gone.
  std::shared_ptr<const void> handle = {};
};

}  // namespace dstune
