// Measures how fast a machine is, on its own device and network.
#pragma once

#include <optional>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/rates/machine_rates.hpp"
#include "core/device/rates/measure_messages.hpp"

namespace dstune {

/// Collective over the group; takes seconds. Times the products of `shapes` that fit in the memory
/// and are not too long, a copy, the fixed time of an operation, and messages (see
/// measure_messages.hpp).
/// @param device    must have nothing queued
/// @param dtype     of products, and of every kind of collective in the whole group
/// @param shapes    short products first
/// @param messages  further messages to time
/// @param largest   bytes of the largest message, and of what is copied
/// @returns this rank's view; none if the device has no time
/// @throws OutOfMemoryError  if not even the messages fit
std::optional<MachineRates> measure_rates(Device& device, Collectives& collectives, DType dtype,
                                          const std::vector<MatrixShape>& shapes,
                                          const std::vector<GroupMessage>& messages = {},
                                          Bytes largest = kLargestMessage);

}  // namespace dstune
