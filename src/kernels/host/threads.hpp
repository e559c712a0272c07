// A team of threads that works on pieces of tensors in host memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dstune::host {

/// The thread that calls is one of the team, and the others wait for it without using a core. They
/// are made once, since making a thread takes as long as a small pass, and have the cores that the
/// thread that made them had.
class Threads {
 public:
  /// @param count  of threads, the caller among them
  /// @throws std::invalid_argument  if count < 1
  /// @throws std::system_error      if the system gives no more threads
  explicit Threads(int count);
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads();

  int count() const { return static_cast<int>(faults_.size()); }
  /// Leaves work from now on to at most so many threads of the team, and at least one.
  void limit(int most) { most_ = std::clamp(most, 1, count()); }

  using Work = std::function<void(std::int64_t begin, std::int64_t end)>;
  /// Borders between ranges are multiples of so many elements: one cache line of fp32.
  static constexpr std::int64_t kPiece = 16;

  /// Divides [0, count) into as equal ranges as whole pieces allow, at most one for each thread,
  /// and returns when work(begin, end) has been called for each. The calling thread has the first
  /// range, the only one that begins at 0. If calls throw, the exception of the first range that
  /// threw is thrown on. One call at a time, and none out of `work`.
  /// @param tick  unless empty, it is called on the calling thread about every millisecond in which
  ///              others still work; what it throws is thrown on when they are through
  void for_ranges(std::int64_t count, const Work& work, const std::function<void()>& tick = {});

 private:
  void serve(int thread);
  void work_on_range(int thread) noexcept;
  void start(std::int64_t count, const Work& work, int working);
  void await_others(const std::function<void()>& tick) noexcept;
  void stop() noexcept;

  // What is done now: written by the caller before `turn_`, read by the others after it.
  int most_ = 0;  ///< how many threads may have a range
  std::int64_t count_ = 0;
  const Work* work_ = nullptr;  ///< nullptr: they end
  int working_ = 0;             ///< how many threads have a range

  std::atomic<std::uint64_t> turn_{0};
  std::atomic<int> left_{0};  ///< threads but the caller that are not through
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  std::condition_variable none_left_;
  std::vector<std::exception_ptr> faults_;  ///< of each thread
  std::vector<std::jthread> others_;
};

}  // namespace dstune::host
