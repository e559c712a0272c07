// What kernels call that needs the block's other threads.
#include <string>

#include "tests/support/cuda_on_host/block_runner.hpp"
#include "tests/support/cuda_on_host/include/cuda_runtime.h"

namespace cuda_on_host {

int block_barrier(bool predicate) { return BlockRunner::current().block_barrier(predicate); }

int live_threads() { return BlockRunner::current().live_threads(); }

int lane_id() { return static_cast<int>(BlockRunner::current().lane()); }

std::uint64_t warp_shuffle(unsigned mask, std::uint64_t value, int source) {
  BlockRunner& runner = BlockRunner::current();
  Meeting& meeting = runner.meet(mask, value);
  if (source < 0 || source >= 32 || (meeting.arrived >> source & 1U) == 0) {
    runner.fail("a shuffle reads from lane " + std::to_string(source) +
                ", which does not take part");
  }
  const std::uint64_t result = meeting.values[static_cast<unsigned>(source)];
  runner.leave(meeting);
  return result;
}

unsigned warp_ballot(unsigned mask, bool predicate) {
  BlockRunner& runner = BlockRunner::current();
  Meeting& meeting = runner.meet(mask, predicate ? 1 : 0);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((meeting.arrived >> lane & 1U) != 0 && meeting.values[lane] != 0) votes |= 1U << lane;
  }
  runner.leave(meeting);
  return votes;
}

}  // namespace cuda_on_host
