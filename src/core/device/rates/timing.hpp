// How long work on the compute stream takes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/statistics.hpp"
#include "core/device/device.hpp"

namespace dstune {

/// The seconds that one call of `run` takes, of `calls` that follow each other without a gap.
template <class Run>
Seconds time_of_call(Device& device, int calls, const Run& run) {
  const Event begin = device.record(Stream::compute);
  for (int call = 0; call < calls; ++call) run();
  const Event end = device.record(Stream::compute);
  device.synchronize();
  return (device.time_of(end) - device.time_of(begin)) / calls;
}

/// The seconds of one call, warm, in a few batches of some milliseconds.
/// @param estimate  the seconds that a call may take
template <class Run>
Summary times_of_call(Device& device, Seconds estimate, const Run& run) {
  constexpr Seconds kBatch = 5e-3;
  const double calls = std::clamp(std::ceil(kBatch / std::max(estimate, 1e-9)), 1.0, 64.0);
  std::array<Seconds, 3> times{};
  for (Seconds& time : times) time = time_of_call(device, static_cast<int>(calls), run);
  return summarize({times.begin(), times.end()});
}

template <class Run>
Seconds median_time_of_call(Device& device, Seconds estimate, const Run& run) {
  return times_of_call(device, estimate, run).median;
}

}  // namespace dstune
