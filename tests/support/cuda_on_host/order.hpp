// The order in which threads and blocks begin, and threads go on.
#pragma once

#include <vector>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/thread_set.hpp"

namespace cuda_on_host {

/// What begin_in() said last, or the environment. Asked once for each kernel: it costs the thread
/// sanitizer more than what a thread does between two barriers.
Order current_order();

/// The numbers below `count` in that order. What is shuffled is the same in every run of a host
/// thread's kernels.
std::vector<unsigned> in_order(unsigned count, Order order);

/// Removes the thread of a block of `threads` that goes on after `running`; kMaxThreads if there is
/// none.
unsigned take_in_order(ThreadSet& ready, unsigned running, unsigned threads, Order order);

}  // namespace cuda_on_host
