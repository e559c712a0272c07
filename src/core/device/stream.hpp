// The queues of a device, and the points in them that others wait for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/units.hpp"

namespace dstune {

/// Work that is queued on one stream runs in that order; two streams are ordered only by events. A
/// CPU runs everything at once, in the order of the calls.
enum class Stream {
  compute,        ///< forward, backward, the update
  reduction,      ///< reductions of gradients, if overlap_comm
  gather,         ///< gathers of parameters in stage 3, if overlap_comm
  communication,  ///< where every collective runs, as NCCL's own stream in PyTorch
};

constexpr std::size_t kStreams = 4;

/// The number of events, by stream, that are known to have passed.
using StreamClock = std::array<std::uint64_t, kStreams>;

/// A point in a stream; a default-constructed one has always passed.
struct Event {
  StreamClock after{};  ///< the events that have passed when this one has, itself included
  Seconds time = 0;     ///< if the device knows it at once: see Device::time_of()
  /// The hardware's own event, where there is one: its device uses it again when the last copy of
  /// this event is gone.
  std::shared_ptr<const void> handle = {};
};

}  // namespace dstune
