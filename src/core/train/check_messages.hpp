// Whether what the ranks of a group send each other arrives right, and how fast it is.
#pragma once

#include <string>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/experiment/outcome/machine_check.hpp"

namespace dstune {

/// The rounds in which the pairs of a group of `size` ranks are checked. Up to 4 ranks these are
/// all pairs. Of more ranks each has partners at distances of 1, 2, 4, ..., so that thousands take
/// a dozen rounds; the ring has all of them.
int pair_rounds(int size);
/// The partner of `rank` in a round; -1: none.
int partner_of(int rank, int round, int size);

/// The values of `from` that arrived wrong here.
struct WrongBytes {
  static constexpr int kSum = -1;  ///< stands for the rank whose bytes are wrong where a sum is

  int from = kSum;
  std::string how;
};

/// What one rank found.
struct MessageCheck {
  std::vector<PairCheck> pairs;  ///< those in which it is the lower rank
  CollectiveRate ring;           ///< of a sum over all ranks
  std::vector<WrongBytes> wrong;
};

/// Collective over the group: all pairs of a round exchange messages side by side, then all ranks
/// sum. @param longest  bytes of the longest message; the device needs three times as many
MessageCheck check_messages(Device& device, Collectives& collectives, Bytes longest);

}  // namespace dstune
