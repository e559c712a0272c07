#include "core/base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/host/this_host.hpp"

namespace dstune {
namespace {

/// The pieces that are left, and the exception that ended them.
class Pieces {
 public:
  Pieces(std::size_t count, const std::function<void(std::size_t)>& work)
      : count_(count), work_(work) {}

  void work_on() {
    for (std::size_t i = next_++; i < count_ && !failed_; i = next_++) {
      try {
        work_(i);
      } catch (...) {
        note(i, std::current_exception());
      }
    }
  }

  void throw_if_failed() const {
    if (failed_) std::rethrow_exception(fault_);
  }

 private:
  void note(std::size_t piece, std::exception_ptr fault) {
    const std::lock_guard lock(mutex_);
    if (failed_ && piece > failed_piece_) return;
    failed_piece_ = piece;
    fault_ = std::move(fault);
    failed_ = true;
  }

  const std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::size_t failed_piece_ = 0;
  std::exception_ptr fault_;
};

}  // namespace

void for_each_in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  constexpr std::size_t kMostThreads = 16;
  Pieces pieces(count, work);
  const auto cores = static_cast<std::size_t>(usable_cores());
  const std::size_t threads = std::min({count, cores, kMostThreads});
  {
    std::vector<std::jthread> others;
    // Signals are for the thread that was there before; new threads inherit this mask.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (std::size_t i = 1; i < threads; ++i) others.emplace_back([&] { pieces.work_on(); });
    } catch (const std::system_error&) {  // no more threads; those that there are do the work
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pieces.work_on();
  }
  pieces.throw_if_failed();
}

}  // namespace dstune
