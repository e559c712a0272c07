// Measures how fast a machine is, on its own device and network.
#pragma once

#include <optional>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/machine_rates.hpp"

namespace dstune {

/// Collective over the group; seconds. Times the products of `shapes` that fit in the memory and
/// are not too long, a copy, the fixed time of an operation, and every kind of collective with
/// messages of four sizes (latency and bytes per second by least squares of relative errors).
/// @param device  with nothing queued
/// @param dtype   of products and messages
/// @param shapes  short products first
/// @returns this rank's view; none if the device has no time
/// @throws OutOfMemoryError  if not even the messages fit
std::optional<MachineRates> measure_rates(Device& device, Collectives& collectives, DType dtype,
                                          const std::vector<MatrixShape>& shapes);

/// latency and bytes_per_s of calls that sent `wire` bytes each in `times`, equally many.
/// @param steps  of the ring; 0: nothing was sent
CollectiveRate fit_collective(int steps, const std::vector<double>& wire,
                              const std::vector<Seconds>& times);

}  // namespace dstune
