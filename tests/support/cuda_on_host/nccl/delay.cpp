#include "tests/support/cuda_on_host/nccl/delay.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/observation.hpp"

namespace cuda_on_host {
namespace {

std::atomic<int>& most_us() {
  static std::atomic<int> most = [] {
    const char* const text = std::getenv("CUDA_ON_HOST_NCCL_DELAY_US");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return most;
}

/// Each stream's thread has numbers of its own, so that ranks are late in turn.
std::mt19937& random_of_this_thread() {
  static std::atomic<unsigned> threads = 0;
  static thread_local std::mt19937 random(threads++);
  return random;
}

}  // namespace

void delay_collectives(int us) { most_us() = us; }

void delay_collective() {
  const Unobserved unobserved;
  const int most = most_us();
  if (most <= 0) return;
  std::uniform_int_distribution<int> delay(0, most);
  std::this_thread::sleep_for(std::chrono::microseconds(delay(random_of_this_thread())));
}

}  // namespace cuda_on_host
