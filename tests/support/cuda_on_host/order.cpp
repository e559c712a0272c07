#include "tests/support/cuda_on_host/order.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/fault.hpp"

namespace cuda_on_host {
namespace {

Order order_of_environment() {
  const char* const name = std::getenv("CUDA_ON_HOST_ORDER");
  const std::string order = name == nullptr ? "ascending" : name;
  if (order == "ascending") return Order::ascending;
  if (order == "descending") return Order::descending;
  if (order == "shuffled") return Order::shuffled;
  misuse("CUDA_ON_HOST_ORDER is " + order + ": ascending, descending, shuffled");
}

std::atomic<Order>& order_of_kernels() {
  static std::atomic<Order> order = order_of_environment();
  return order;
}

std::mt19937& random_of_this_thread() {
  static thread_local std::mt19937 random;  // NOLINT(cert-msc51-cpp): the same in every run
  return random;
}

}  // namespace

void begin_in(Order order) { order_of_kernels() = order; }

Order current_order() { return order_of_kernels(); }

std::vector<unsigned> in_order(unsigned count, Order order) {
  std::vector<unsigned> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  if (order == Order::descending) std::reverse(numbers.begin(), numbers.end());
  if (order == Order::shuffled) {
    std::shuffle(numbers.begin(), numbers.end(), random_of_this_thread());
  }
  return numbers;
}

unsigned take_in_order(ThreadSet& ready, unsigned running, unsigned threads, Order order) {
  if (order == Order::descending) return ready.take_before(running);
  if (order == Order::ascending) return ready.take_from(running);
  return ready.take_from(static_cast<unsigned>(random_of_this_thread()() % threads));
}

}  // namespace cuda_on_host
