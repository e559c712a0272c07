// Times of operations on a device, one after the other in turn, with cold caches.
#pragma once

#include <functional>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/tensor.hpp"

namespace dstune::bench {

/// Queues something on the compute stream.
using Queue = std::function<void()>;

/// Times are the device's own, between two events.
class Stopwatch {
 public:
  /// Takes memory to flush caches with, where the device works beside the host.
  explicit Stopwatch(Device& device);

  /// Keeps the device busy until its clocks have settled.
  void warm_up(const Queue& queue);

  /// Median seconds of each, which take turns: a change of the clock meets all of them.
  std::vector<Seconds> times(const std::vector<Queue>& queues);

 private:
  /// A device that worked on nothing else would have the operands in its cache; and what takes long
  /// lets the host run ahead, so that no launch is waited for between the events.
  void flush();
  Seconds time_of(const Queue& queue);

  Device& device_;
  Buffer space_;
};

}  // namespace dstune::bench
