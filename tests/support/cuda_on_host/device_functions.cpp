// What kernels call that needs the block's other threads.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/block_runner.hpp"
#include "tests/support/cuda_on_host/include/cuda_runtime.h"
#include "tests/support/cuda_on_host/include/warp_instructions.cuh"

namespace cuda_on_host {

namespace {

struct LateCopy {
  void* to;
  const void* from;  ///< null: zeros
  unsigned bytes;
};

/// Of each thread of the block that runs on this host thread.
thread_local std::vector<std::vector<LateCopy>> late_copies(kMaxThreads);

}  // namespace

int block_barrier(bool predicate) { return BlockRunner::current().block_barrier(predicate); }

int live_threads() { return BlockRunner::current().live_threads(); }

CUDA_ON_HOST_UNSEEN int lane_id() { return static_cast<int>(BlockRunner::current().lane()); }

CUDA_ON_HOST_UNSEEN std::uint64_t warp_shuffle(unsigned mask, std::uint64_t value, int source) {
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

CUDA_ON_HOST_UNSEEN unsigned warp_ballot(unsigned mask, bool predicate) {
  BlockRunner& runner = BlockRunner::current();
  Meeting& meeting = runner.meet(mask, predicate ? 1 : 0);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((meeting.arrived >> lane & 1U) != 0 && meeting.values[lane] != 0) votes |= 1U << lane;
  }
  runner.leave(meeting);
  return votes;
}

void warp_together(void* own, void (*work)(const LanesOperands&)) {
  BlockRunner& runner = BlockRunner::current();
  Meeting& meeting = runner.meet(~0U, std::bit_cast<std::uintptr_t>(own));
  if (meeting.arrived != ~0U) runner.fail("an instruction of the whole warp lacks lanes");
  if (meeting.readers == ~0U) {  // the last to come goes on first
    LanesOperands operands;
    std::transform(meeting.values.begin(), meeting.values.end(), operands.begin(),
                   [](std::uint64_t value) { return std::bit_cast<void*>(value); });
    work(operands);
  }
  runner.leave(meeting);
}

void copy_later(void* to, const void* from, unsigned bytes, bool exists) {
  late_copies[threadIdx.x].push_back({to, exists ? from : nullptr, bytes});
}

void wait_for_copies() {
  for (const LateCopy& copy : late_copies[threadIdx.x]) {
    if (copy.from == nullptr) {
      std::memset(copy.to, 0, copy.bytes);
    } else {
      std::memcpy(copy.to, copy.from, copy.bytes);
    }
  }
  late_copies[threadIdx.x].clear();
}

}  // namespace cuda_on_host
