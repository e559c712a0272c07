// Measures how fast messages are, on a group's own network.
#pragma once

#include <array>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/rates/machine_rates.hpp"

namespace dstune {

constexpr Bytes kLargestMessage = Bytes{1} << 24U;
/// The bytes per second of what takes no time, such as sending nothing: JSON knows no infinity.
constexpr double kAtOnce = 1e18;

/// Measures every kind of collective over the group with messages of four sizes: latency and bytes
/// per second by least squares of relative errors.
/// @param largest  size in bytes; the others are 1/8, 1/64 and 1/1024 of it
/// @throws OutOfMemoryError  if two of the largest messages do not fit
std::array<CollectiveRate, kCollectiveKinds> measure_collectives(Device& device,
                                                                 Collectives& collectives,
                                                                 DType dtype, Bytes largest);

/// The rates of `messages`, which must be the same on all ranks. All parts of the group through
/// which a message may go send at the same time, as they do in a step. A part that does not divide
/// the group is left out.
std::vector<MessageRate> measure_messages(Device& device, Collectives& collectives,
                                          const std::vector<GroupMessage>& messages,
                                          Bytes largest = kLargestMessage);

/// The latency and bytes_per_s of calls that sent `wire` bytes each in `times`; both lists are
/// equally long.
/// @param steps  of the ring; 0: nothing was sent
CollectiveRate fit_collective(int steps, const std::vector<double>& wire,
                              const std::vector<Seconds>& times);

}  // namespace dstune
