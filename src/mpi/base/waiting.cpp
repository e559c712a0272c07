#include "mpi/base/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <sched.h>

namespace dstune {

namespace {

constexpr Seconds kLongestPause = 1e-3;
// Pauses reach 1 ms after some 20 ms of silence, so that during a handshake ranks still look often.
constexpr double kGrowth = 1.05;
constexpr Seconds kYieldTime = 1e-3;
constexpr Seconds kTransferPause = 100e-6;
constexpr int kLooksPerClock = 16;
constexpr Seconds kLongestListening = 1;

void sleep_for(Seconds seconds) {
  std::this_thread::sleep_for(std::chrono::duration<Seconds>(seconds));
}

}  // namespace

Seconds steady_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<Seconds>(now).count();
}

void Backoff::pause() {
  sleep_for(pause_);
  pause_ = std::min(pause_ * kGrowth, kLongestPause);
}

void Yield::pause() {
  if (looks_++ % kLooksPerClock == 0) {
    const Seconds now = steady_now();
    if (looks_ == 1) begin_ = now;
    if (now - begin_ > kYieldTime) {
      sleep_for(kTransferPause);
      looks_ = kLooksPerClock;  // from now on every pause looks at the clock and sleeps
      return;
    }
  }
  sched_yield();
}

void Silence::listened(Seconds now) {
  if (last_look_ > 0) length_ += std::min(now - last_look_, kLongestListening);
  last_look_ = now;
}

}  // namespace dstune
