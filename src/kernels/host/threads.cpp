#include "kernels/host/threads.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "kernels/host/blocked_signals.hpp"

namespace dstune::host {
namespace {

using Clock = std::chrono::steady_clock;

/// A pass often follows another one at once: for so long a thread looks before it sleeps, since to
/// be woken takes as long.
constexpr std::chrono::microseconds kSpin{20};

constexpr std::chrono::milliseconds kTick{1};

/// Whether is_done() became true while it looked. Threads that share a core leave it to each other.
template <class IsDone>
bool spin_until(IsDone is_done) {
  const auto end = Clock::now() + kSpin;
  do {
    if (is_done()) return true;
    std::this_thread::yield();
  } while (Clock::now() < end);
  return is_done();
}

}  // namespace

Threads::Threads(int count) {
  if (count < 1) throw std::invalid_argument("a team has at least one thread");
  faults_.resize(static_cast<std::size_t>(count));
  most_ = count;
  others_.reserve(faults_.size() - 1);
  const BlockedSignals blocked;
  try {
    for (int i = 1; i < count; ++i) others_.emplace_back([this, i] { serve(i); });
  } catch (...) {
    stop();
    throw;
  }
}

Threads::~Threads() { stop(); }

void Threads::for_ranges(std::int64_t count, const Work& work, const std::function<void()>& tick) {
  if (count <= 0) return;
  const std::int64_t pieces = (count + kPiece - 1) / kPiece;
  const auto working = static_cast<int>(std::min<std::int64_t>(pieces, most_));
  start(count, work, working);
  work_on_range(0);
  if (working > 1) await_others(tick);
  std::exception_ptr fault;
  for (std::exception_ptr& each : faults_) {
    const std::exception_ptr of_thread = std::exchange(each, nullptr);
    if (!fault) fault = of_thread;
  }
  if (fault) std::rethrow_exception(fault);
}

void Threads::start(std::int64_t count, const Work& work, int working) {
  count_ = count;
  work_ = &work;
  working_ = working;
  if (working == 1) return;
  left_.store(static_cast<int>(others_.size()), std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    turn_.fetch_add(1, std::memory_order_release);
  }
  turn_changed_.notify_all();
}

void Threads::serve(int thread) {
  for (std::uint64_t turn = 0;; ++turn) {
    const auto has_changed = [&] { return turn_.load(std::memory_order_acquire) != turn; };
    if (!spin_until(has_changed)) {
      std::unique_lock lock(mutex_);
      turn_changed_.wait(lock, has_changed);
    }
    if (work_ == nullptr) return;
    work_on_range(thread);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const std::lock_guard lock(mutex_);
      none_left_.notify_one();
    }
  }
}

void Threads::work_on_range(int thread) noexcept {
  if (thread >= working_) return;
  const std::int64_t pieces = (count_ + kPiece - 1) / kPiece;
  const std::int64_t each = pieces / working_;
  const std::int64_t longer = pieces % working_;  // the first ones have a piece more
  const std::int64_t begin = thread * each + std::min<std::int64_t>(thread, longer);
  const std::int64_t end = begin + each + (thread < longer ? 1 : 0);
  try {
    (*work_)(begin * kPiece, std::min(end * kPiece, count_));
  } catch (...) {
    faults_[static_cast<std::size_t>(thread)] = std::current_exception();
  }
}

void Threads::await_others(const std::function<void()>& tick) noexcept {
  const auto none_left = [this] { return left_.load(std::memory_order_acquire) == 0; };
  if (spin_until(none_left)) return;
  bool ticks = static_cast<bool>(tick);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!ticks) return none_left_.wait(lock, none_left);
    if (none_left_.wait_for(lock, kTick, none_left)) return;
    lock.unlock();
    try {
      tick();
    } catch (...) {
      if (!faults_[0]) faults_[0] = std::current_exception();
      ticks = false;
    }
    lock.lock();
  }
}

void Threads::stop() noexcept {
  work_ = nullptr;
  {
    const std::lock_guard lock(mutex_);
    turn_.fetch_add(1, std::memory_order_release);
  }
  turn_changed_.notify_all();
  others_.clear();
}

}  // namespace dstune::host
