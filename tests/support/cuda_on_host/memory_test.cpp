// Memory of devices: limits, accounting, pinned memory, what is left, and faults of calls.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace memory_test {
namespace {

using cuda_on_host::check;
using cuda_on_host::Live;
using cuda_on_host::TestStream;

class Memory : public testing::Test {
 protected:
  void SetUp() override { cuda_on_host::set_up({.devices = 2, .bytes = 1000}); }

  static std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total));
    return free;
  }
};

TEST_F(Memory, of_each_device_has_its_own_limit) {
  char* first = nullptr;
  char* second = nullptr;
  char* third = nullptr;
  check(cudaMalloc(&first, 600));
  EXPECT_EQ(cudaMalloc(&second, 401), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  check(cudaMalloc(&second, 400));
  EXPECT_EQ(free_bytes(), 0U);
  check(cudaSetDevice(1));
  EXPECT_EQ(free_bytes(), 1000U);
  check(cudaMalloc(&third, 1000));
  EXPECT_EQ(cuda_on_host::live(), (Live{.allocations = 3, .bytes = 2000}));
  for (char* pointer : {first, second, third}) check(cudaFree(pointer));
  EXPECT_EQ(cuda_on_host::live(), Live{});
}

TEST_F(Memory, what_was_not_allocated_is_not_freed) {
  int local = 0;
  EXPECT_EQ(cudaFree(&local), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
}

TEST_F(Memory, copies_must_be_of_the_kind_they_say) {
  const TestStream stream;
  char* device = nullptr;
  char* pinned = nullptr;
  check(cudaMalloc(&device, 8));
  check(cudaMallocHost(&pinned, 8));
  EXPECT_EQ(cudaMemcpyAsync(device, pinned, 8, cudaMemcpyDeviceToDevice, stream.get()),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device, pinned, 8, cudaMemcpyHostToDevice, stream.get()), cudaSuccess);
  stream.synchronise();
  check(cudaFree(device));
  check(cudaFreeHost(pinned));
}

TEST_F(Memory, a_copy_from_pageable_memory_is_over_when_the_call_returns) {
  const TestStream stream;
  int* device = nullptr;
  check(cudaMalloc(&device, sizeof(int)));
  int value = 7;
  check(cudaMemcpyAsync(device, &value, sizeof value, cudaMemcpyHostToDevice, stream.get()));
  value = 0;
  check(cudaMemcpyAsync(&value, device, sizeof value, cudaMemcpyDeviceToHost, stream.get()));
  EXPECT_EQ(value, 7);
  check(cudaFree(device));
}

TEST_F(Memory, a_fault_strikes_the_kth_call_of_its_device_once) {
  char* pointer = nullptr;
  cuda_on_host::inject(
      {.function = "cudaMalloc", .call = 2, .error = cudaErrorMemoryAllocation, .device = 1});
  for (int device = 0; device < 2; ++device) {
    check(cudaSetDevice(device));
    check(cudaMalloc(&pointer, 8));
    check(cudaFree(pointer));
  }
  EXPECT_EQ(cuda_on_host::faults_left(), 1);
  EXPECT_EQ(cudaMalloc(&pointer, 8), cudaErrorMemoryAllocation);
  EXPECT_EQ(cuda_on_host::faults_left(), 0);
  check(cudaMalloc(&pointer, 8));
  check(cudaFree(pointer));
  EXPECT_EQ(cuda_on_host::calls("cudaMalloc"), 4U);
  EXPECT_EQ(cuda_on_host::calls("cudaMalloc", 1), 3U);
}

TEST_F(Memory, a_sticky_error_stays_with_its_device_but_what_is_freed_is_freed) {
  char* pointer = nullptr;
  check(cudaMalloc(&pointer, 8));
  cuda_on_host::inject({.call = 2, .error = cudaErrorIllegalAddress, .sticky = true});
  EXPECT_EQ(free_bytes(), 992U);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFree(pointer), cudaErrorIllegalAddress);
  EXPECT_EQ(cuda_on_host::live(), Live{});
}

TEST(Driver, missing_makes_every_call_say_so) {
  cuda_on_host::set_up({.driver = false});
  int count = -1;
  void* pointer = nullptr;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(cudaMalloc(&pointer, 8), cudaErrorInsufficientDriver);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInsufficientDriver), "cudaErrorInsufficientDriver");
  int version = -1;
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 0);
}

TEST_F(Memory, is_not_a_number_where_it_is_poisoned) {
  cuda_on_host::poison_memory(true);
  float* device = nullptr;
  check(cudaMalloc(&device, sizeof(float)));
  cuda_on_host::poison_memory(false);

  float value = 0;
  check(cudaMemcpy(&value, device, sizeof(float), cudaMemcpyDeviceToHost));

  EXPECT_TRUE(std::isnan(value));
  check(cudaFree(device));
}

}  // namespace
}  // namespace memory_test
