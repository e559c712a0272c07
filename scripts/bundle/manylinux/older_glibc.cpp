// What libstdc++ of GCC 12 and its headers call of a glibc of 2.30 and newer, for a program that links an older one
// (fetch.sh). Nothing of it is exported: where the program runs, the C library and others keep their own.
#include <pthread.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#pragma GCC visibility push(hidden)

namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * kNanosecondsPerSecond + time.tv_nsec;
}

std::int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return nanoseconds(time);
}

}  // namespace

extern "C" {

// glibc 2.32: that a process has one thread, so that shared_ptr may count without atomic operations. It never says so.
char __libc_single_threaded = 0;

// glibc 2.36: the numbers of std::random_device.
std::uint32_t arc4random() {
  std::uint32_t value = 0;
  ssize_t got = 0;
  do got = getrandom(&value, sizeof value, 0);
  while (got < 0 && errno == EINTR);
  if (got != sizeof value) std::abort();
  return value;
}

// glibc 2.30: std::condition_variable's waiting until a time of the monotonic clock. A clock of the day that is set
// meanwhile ends the wait too early, which callers take for a wake-up without reason, or later than asked for.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  const std::int64_t end = nanoseconds(*until);
  const std::int64_t day_end = now(CLOCK_REALTIME) + end - now(clock);
  const timespec day_time{.tv_sec = day_end / kNanosecondsPerSecond,
                          .tv_nsec = day_end % kNanosecondsPerSecond};
  const int fault = pthread_cond_timedwait(condition, mutex, &day_time);
  return fault == ETIMEDOUT && now(clock) < end ? 0 : fault;
}

}  // extern "C"
