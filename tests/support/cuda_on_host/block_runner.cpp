#include "tests/support/cuda_on_host/block_runner.hpp"

#include <algorithm>
#include <utility>

#include <boost/context/protected_fixedsize_stack.hpp>

#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/include/cuda_runtime.h"
#include "tests/support/cuda_on_host/kernel_name.hpp"
#include "tests/support/cuda_on_host/order.hpp"

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};

namespace cuda_on_host {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} * 1024;

constinit thread_local BlockRunner* runner = nullptr;

}  // namespace

BlockRunner::BlockRunner() : warps_(kMaxThreads / kLanes) {}

BlockRunner::~BlockRunner() {
  quit_ = true;
  for (auto& fiber : fibers_) switch_to(*fiber);
}

BlockRunner& BlockRunner::current() {
  if (runner == nullptr) misuse("device code runs outside of a kernel");
  return *runner;
}

void BlockRunner::run_grid(dim3 grid, dim3 block, const std::function<void()>& thread,
                           const void* kernel) {
  thread_ = &thread;
  kernel_ = kernel;
  shape_ = block;
  threads_ = block.x * block.y * block.z;
  gridDim = grid;
  blockDim = block;
  runner = this;
  order_ = current_order();
  for (const unsigned i : in_order(grid.x * grid.y * grid.z, order_)) {
    blockIdx = {i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y};
    run_block();
  }
  runner = nullptr;
}

void BlockRunner::run_block() {
  start_block();
  switch_to(idle_fiber());
}

void BlockRunner::start_block() {
  begun_ = 0;
  in_turn_ = in_order(threads_, order_);
  live_ = threads_;
  for (unsigned first = 0; first < threads_; first += kLanes) {
    const unsigned lanes = std::min(kLanes, threads_ - first);
    warps_[first / kLanes].start(lanes == kLanes ? ~0U : (1U << lanes) - 1U);
  }
}

BlockRunner::Fiber& BlockRunner::idle_fiber() {
  if (!idle_.empty()) {
    Fiber& fiber = *idle_.back();
    idle_.pop_back();
    return fiber;
  }
  auto& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
  fiber.context = boost::context::fiber(std::allocator_arg,
                                        boost::context::protected_fixedsize_stack(kStackBytes),
                                        [this](boost::context::fiber&& from) {
                                          left_->context = std::move(from);
                                          fiber_main();
                                          return std::move(main_.context);
                                        });
  return fiber;
}

void BlockRunner::fiber_main() {
  while (!quit_) {
    run_new_threads();
    idle_.push_back(running_);
    switch_to(next_fiber());
  }
  left_ = running_;
  running_ = &main_;
}

void BlockRunner::run_new_threads() {
  while (begun_ < threads_) {
    const unsigned thread = in_turn_[begun_++];
    running_->thread = thread;
    running_->index = index_of(thread);
    threadIdx = running_->index;
    (*thread_)();
    thread_ended(thread);
  }
}

uint3 BlockRunner::index_of(unsigned thread) const {
  if (shape_.x == threads_) return {thread, 0, 0};
  return {thread % shape_.x, thread / shape_.x % shape_.y, thread / shape_.x / shape_.y};
}

void BlockRunner::thread_ended(unsigned thread) {
  --live_;
  if (at_barrier_ > 0 && at_barrier_ == live_) release_block();
  const unsigned warp = thread / kLanes;
  const std::uint32_t freed = warps_[warp].lane_ended(thread % kLanes);
  if (freed != 0) ready_.insert_lanes(warp, freed);
}

void BlockRunner::switch_to(Fiber& next) {
  Fiber& self = *running_;
  left_ = &self;
  running_ = &next;
  auto from = std::move(next.context).resume();
  left_->context = std::move(from);
}

/// Whoever can go on: a thread whose wait is over, or the block's caller if all threads ended.
BlockRunner::Fiber& BlockRunner::next_fiber() {
  const unsigned thread = take_in_order(ready_, running_->thread, threads_, order_);
  if (thread < kMaxThreads) return *fiber_of_[thread];
  if (live_ == 0) return main_;
  fail("its threads wait for one another for ever: " + std::to_string(at_barrier_) + " of " +
       std::to_string(live_) + " at a barrier, the rest in a warp's shuffle or vote");
}

void BlockRunner::wait() {
  fiber_of_[running_->thread] = running_;
  switch_to(begun_ < threads_ ? idle_fiber() : next_fiber());
  threadIdx = running_->index;
}

int BlockRunner::block_barrier(bool predicate) {
  votes_ += predicate ? 1 : 0;
  if (++at_barrier_ == live_) return release_block();
  barrier_.insert(running_->thread);
  wait();
  return last_votes_;
}

/// The barrier's next round cannot end before all have read this round's votes.
int BlockRunner::release_block() {
  ready_.insert_all(barrier_);
  barrier_.clear();
  at_barrier_ = 0;
  last_votes_ = std::exchange(votes_, 0);
  return last_votes_;
}

Meeting& BlockRunner::meet(std::uint32_t mask, std::uint64_t value) {
  const unsigned thread = running_->thread;
  const unsigned warp = thread / kLanes;
  const unsigned self = thread % kLanes;
  if ((mask >> self & 1U) == 0) fail("a lane calls a shuffle or vote whose mask lacks it");
  Meeting& meeting = warps_[warp].arrive(mask, self, value);
  if (warps_[warp].completes(meeting)) {
    ready_.insert_lanes(warp, meeting.arrived & ~(1U << self));
  } else {
    wait();
  }
  return meeting;
}

void BlockRunner::leave(Meeting& meeting) {
  warps_[running_->thread / kLanes].leave(meeting, lane());
}

unsigned BlockRunner::lane() const { return running_->thread % kLanes; }

void BlockRunner::fail(const std::string& message) const {
  misuse("kernel " + kernel_name(kernel_) + ": " + message);
}

}  // namespace cuda_on_host
