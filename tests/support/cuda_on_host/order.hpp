// The order in which threads and blocks begin, and threads go on.
#pragma once

#include <vector>

#include "tests/support/cuda_on_host/thread_set.hpp"

namespace cuda_on_host {

/// The numbers below `count` as begin_in() said. What is shuffled is the same in every run of a
/// host thread's kernels.
std::vector<unsigned> in_order(unsigned count);

/// Removes the thread of a block of `threads` that goes on after `running`; kMaxThreads if there is
/// none.
unsigned take_in_order(ThreadSet& ready, unsigned running, unsigned threads);

}  // namespace cuda_on_host
