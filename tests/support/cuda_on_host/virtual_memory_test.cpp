// The driver's virtual memory management on the host.
#include <cmath>
#include <csetjmp>
#include <csignal>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace virtual_memory_test {
namespace {

using cuda_on_host::Live;
using cuda_on_host::TestStream;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kSize = 4 * kMiB;

void check(CUresult result) { ASSERT_EQ(result, CUDA_SUCCESS); }

CUmemAllocationProp pinned(int device = 0) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return prop;
}

CUmemAccessDesc all_access(int device = 0) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

class VirtualMemory : public testing::Test {
 protected:
  VirtualMemory() { cuda_on_host::set_up({.devices = 2, .bytes = 10 * kMiB}); }
  ~VirtualMemory() override { EXPECT_EQ(cuda_on_host::live(), Live{}); }

  static CUdeviceptr reserved() {
    CUdeviceptr range = 0;
    check(cuMemAddressReserve(&range, kSize, 0, 0, 0));
    return range;
  }
  static CUmemGenericAllocationHandle created(int device = 0) {
    CUmemGenericAllocationHandle pages = 0;
    const CUmemAllocationProp prop = pinned(device);
    check(cuMemCreate(&pages, kSize, &prop, 0));
    return pages;
  }
  /// With pages that are accessible, and no handle of them.
  static CUdeviceptr mapped() {
    const CUdeviceptr range = reserved();
    const auto pages = created();
    check(cuMemMap(range, kSize, 0, pages, 0));
    check(cuMemRelease(pages));
    const CUmemAccessDesc access = all_access();
    check(cuMemSetAccess(range, kSize, &access, 1));
    return range;
  }
};

TEST_F(VirtualMemory, pages_are_of_the_device_until_neither_a_handle_nor_a_mapping_holds_them) {
  const CUdeviceptr range = reserved();
  EXPECT_EQ(free_bytes(), 10 * kMiB);
  const auto pages = created();
  EXPECT_EQ(free_bytes(), 6 * kMiB);
  check(cuMemMap(range, kSize, 0, pages, 0));
  check(cuMemRelease(pages));
  EXPECT_EQ(free_bytes(), 6 * kMiB);
  check(cuMemUnmap(range, kSize));
  EXPECT_EQ(free_bytes(), 10 * kMiB);
  check(cuMemAddressFree(range, kSize));
}

TEST_F(VirtualMemory, is_copied_to_and_from_as_other_memory_of_the_device) {
  const CUdeviceptr range = mapped();
  EXPECT_EQ(range % (2 * kMiB), 0U);
  char* const data = reinterpret_cast<char*>(range) + kSize - 8;
  const TestStream stream;
  int value = 7;
  EXPECT_EQ(cudaMemcpyAsync(data, &value, sizeof value, cudaMemcpyHostToDevice, stream.get()),
            cudaSuccess);
  int back = 0;
  EXPECT_EQ(cudaMemcpyAsync(&back, data, sizeof back, cudaMemcpyDeviceToHost, stream.get()),
            cudaSuccess);
  EXPECT_EQ(back, 7);
  check(cuMemUnmap(range, kSize));
  EXPECT_EQ(cudaMemcpyAsync(data, &value, sizeof value, cudaMemcpyHostToDevice, stream.get()),
            cudaErrorInvalidValue);
  check(cuMemAddressFree(range, kSize));
}

TEST_F(VirtualMemory, is_not_a_number_where_it_is_poisoned) {
  cuda_on_host::poison_memory(true);
  const CUdeviceptr range = mapped();
  cuda_on_host::poison_memory(false);
  float value = 0;
  EXPECT_EQ(
      cudaMemcpy(&value, reinterpret_cast<float*>(range), sizeof value, cudaMemcpyDeviceToHost),
      cudaSuccess);
  EXPECT_TRUE(std::isnan(value));
  check(cuMemUnmap(range, kSize));
  check(cuMemAddressFree(range, kSize));
}

TEST_F(VirtualMemory, a_full_device_refuses_pages) {
  const auto first = created();
  const auto second = created();
  CUmemGenericAllocationHandle third = 0;
  const CUmemAllocationProp prop = pinned();
  EXPECT_EQ(cuMemCreate(&third, kSize, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  const auto elsewhere = created(1);
  for (const auto pages : {first, second, elsewhere}) check(cuMemRelease(pages));
}

TEST_F(VirtualMemory, what_cuda_forbids_is_refused) {
  const CUdeviceptr range = reserved();
  const auto pages = created();
  CUmemGenericAllocationHandle none = 0;
  const CUmemAllocationProp prop = pinned();
  const CUmemAllocationProp elsewhere = pinned(2);
  const CUmemAllocationProp nowhere{};
  CUmemAccessDesc access = all_access();
  EXPECT_EQ(cuMemCreate(&none, 3 * kMiB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&none, kSize, &elsewhere, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&none, kSize, &nowhere, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemSetAccess(range, kSize, &access, 1), CUDA_ERROR_INVALID_VALUE) << "nothing there";
  EXPECT_EQ(cuMemUnmap(range, kSize), CUDA_ERROR_INVALID_VALUE);
  check(cuMemMap(range, kSize, 0, pages, 0));
  EXPECT_EQ(cuMemMap(range, kSize, 0, pages, 0), CUDA_ERROR_INVALID_VALUE) << "something is there";
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  EXPECT_EQ(cuMemSetAccess(range, kSize, &access, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(range, kSize), CUDA_ERROR_INVALID_VALUE) << "still mapped";
  check(cuMemUnmap(range, kSize));
  check(cuMemRelease(pages));
  EXPECT_EQ(cuMemRelease(pages), CUDA_ERROR_INVALID_VALUE);
  check(cuMemAddressFree(range, kSize));
}

TEST_F(VirtualMemory, is_unmapped_when_the_device_has_done_what_was_queued) {
  const CUdeviceptr range = mapped();
  const TestStream stream;
  cudaMemsetAsync(reinterpret_cast<void*>(range), 1, kSize, stream.get());
  check(cuMemUnmap(range, kSize));
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaSuccess);
  check(cuMemAddressFree(range, kSize));
}

sigjmp_buf before_access;

/// True if reading there is a segmentation fault.
bool faults(CUdeviceptr address) {
  struct sigaction returning {};
  struct sigaction outer {};
  returning.sa_handler = [](int) { siglongjmp(before_access, 1); };
  sigaction(SIGSEGV, &returning, &outer);
  bool has_faulted = true;
  if (sigsetjmp(before_access, 1) == 0) {
    [[maybe_unused]] const char read = *reinterpret_cast<const volatile char*>(address);
    has_faulted = false;
  }
  sigaction(SIGSEGV, &outer, nullptr);
  return has_faulted;
}

TEST_F(VirtualMemory, an_access_faults_before_it_is_allowed_and_after_the_pages_are_unmapped) {
  const CUdeviceptr range = reserved();
  const auto pages = created();
  EXPECT_TRUE(faults(range));
  check(cuMemMap(range, kSize, 0, pages, 0));
  check(cuMemRelease(pages));
  EXPECT_TRUE(faults(range));
  const CUmemAccessDesc access = all_access();
  check(cuMemSetAccess(range, kSize, &access, 1));
  EXPECT_FALSE(faults(range + kSize - 1));
  check(cuMemUnmap(range, kSize));
  EXPECT_TRUE(faults(range));
  check(cuMemAddressFree(range, kSize));
}

TEST_F(VirtualMemory, what_is_freed_is_freed_even_if_the_call_fails) {
  const CUdeviceptr range = mapped();
  cuda_on_host::inject(
      {.function = "cuMemUnmap", .error = cudaErrorIllegalAddress, .sticky = true});
  EXPECT_EQ(static_cast<int>(cuMemUnmap(range, kSize)), cudaErrorIllegalAddress);
  EXPECT_EQ(static_cast<int>(cuMemAddressFree(range, kSize)), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST_F(VirtualMemory, is_there_unless_the_machine_has_none) {
  for (const bool has : {true, false}) {
    cuda_on_host::set_up({.virtual_memory = has, .page_bytes = 8 * kMiB});
    CUdevice device = -1;
    check(cuDeviceGet(&device, 0));
    int value = -1;
    check(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                               device));
    EXPECT_EQ(value, has ? 1 : 0);
    std::size_t granularity = 0;
    const CUmemAllocationProp prop = pinned();
    check(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT_EQ(granularity, 8 * kMiB);
  }
}

}  // namespace
}  // namespace virtual_memory_test
