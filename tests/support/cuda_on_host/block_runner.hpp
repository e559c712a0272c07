// Runs a block's threads on one thread of the host, as fibers that take turns at barriers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/context/fiber.hpp>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/include/vector_types.h"
#include "tests/support/cuda_on_host/thread_set.hpp"
#include "tests/support/cuda_on_host/warp_meetings.hpp"

namespace cuda_on_host {

/// A fiber runs one thread after another; a thread that waits keeps its fiber, and another fiber
/// goes on with the threads that have not begun. So a kernel without barriers needs one fiber.
class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// The one of this host thread; aborts where none runs a block.
  static BlockRunner& current();

  /// Runs all blocks of a grid, one after another. Aborts with the kernel's name if threads wait
  /// for one another for ever.
  void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread, const void* kernel);

  // For the thread that runs now.
  int block_barrier(bool predicate);
  Meeting& meet(std::uint32_t mask, std::uint64_t value);
  void leave(Meeting& meeting);
  unsigned lane() const;
  int live_threads() const { return static_cast<int>(live_); }
  [[noreturn]] void fail(const std::string& message) const;

 private:
  struct Fiber {
    boost::context::fiber context;
    unsigned thread = 0;
    uint3 index{};
  };

  void run_block();
  void start_block();
  void fiber_main();
  void run_new_threads();
  void thread_ended(unsigned thread);
  void wait();
  int release_block();
  Fiber& idle_fiber();
  Fiber& next_fiber();
  void switch_to(Fiber& next);
  uint3 index_of(unsigned thread) const;

  const std::function<void()>* thread_ = nullptr;
  const void* kernel_ = nullptr;
  dim3 shape_;
  unsigned threads_ = 0;  ///< of a block
  unsigned begun_ = 0;
  Order order_ = Order::ascending;
  std::vector<unsigned> in_turn_;  ///< the threads
  unsigned live_ = 0;
  unsigned at_barrier_ = 0;
  int votes_ = 0;
  int last_votes_ = 0;
  bool quit_ = false;

  Fiber main_;
  Fiber* running_ = &main_;
  Fiber* left_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::array<Fiber*, kMaxThreads> fiber_of_{};
  ThreadSet ready_;
  ThreadSet barrier_;
  std::vector<WarpMeetings> warps_;
};

}  // namespace cuda_on_host
