#include "tests/support/cuda_on_host/nccl/delay.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/observation.hpp"

namespace cuda_on_host {
namespace {

std::atomic<int> most_us = 0;
std::atomic<std::uint64_t> delayed = 0;

/// Each stream's thread has numbers of its own, so that ranks are late in turn.
std::mt19937& random_of_this_thread() {
  static std::atomic<unsigned> threads = 0;
  static thread_local std::mt19937 random(threads++);
  return random;
}

}  // namespace

void delay_collectives(int us) { most_us = us; }

std::uint64_t delayed_collectives() { return delayed; }

void delay_collective() {
  const Unobserved unobserved;
  const int most = most_us;
  if (most <= 0) return;
  ++delayed;
  std::uniform_int_distribution<int> delay(0, most);
  std::this_thread::sleep_for(std::chrono::microseconds(delay(random_of_this_thread())));
}

}  // namespace cuda_on_host
