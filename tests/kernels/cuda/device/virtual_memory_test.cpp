// Segments of a GPU's memory, on CUDA on the host.
#include "kernels/cuda/device/virtual_memory.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/faults.hpp"
#include "kernels/cuda/base/check.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda::virtual_memory_test {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;
constexpr Bytes kMemory = 64 * kMiB;
constexpr const char* kMaking[] = {"cuMemAddressReserve", "cuMemCreate", "cuMemMap",
                                   "cuMemSetAccess"};

class VirtualMemoryTest : public testing::Test {
 protected:
  VirtualMemoryTest() { cuda_on_host::set_up({.bytes = kMemory}); }
  ~VirtualMemoryTest() override { EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}); }

  static Bytes all(Bytes /*held*/) { return kMemory; }
};

TEST_F(VirtualMemoryTest, ASegmentTakesItsSizeAndNoMore) {
  VirtualMemory memory(0, all);

  const auto segment = memory.make(6 * kMiB);

  ASSERT_NE(segment.data, nullptr);
  EXPECT_EQ(segment.refusal, "");
  std::memset(segment.data, 1, 6 * kMiB);
  EXPECT_EQ(memory.held(), 6 * kMiB);
  EXPECT_EQ(cuda_on_host::live().bytes, 6 * kMiB);
  memory.give_back(segment.data, 6 * kMiB);
  EXPECT_EQ(memory.held(), 0U);
  EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
}

TEST_F(VirtualMemoryTest, KeepsNoHandleOfItsPages) {
  VirtualMemory memory(0, all);

  const auto segment = memory.make(2 * kMiB);

  EXPECT_EQ(cuda_on_host::calls("cuMemRelease"), 1U);
  memory.give_back(segment.data, 2 * kMiB);
  EXPECT_EQ(cuda_on_host::calls("cuMemRelease"), 1U);
}

TEST_F(VirtualMemoryTest, AFullGpuRefusesASegmentWhicheverCallSaysSo) {
  VirtualMemory memory(0, all);
  for (const char* function : kMaking) {
    SCOPED_TRACE(function);
    cuda_on_host::inject({.function = function, .error = cudaErrorMemoryAllocation});

    const auto segment = memory.make(2 * kMiB);

    EXPECT_EQ(segment.data, nullptr);
    EXPECT_EQ(segment.refusal, "the driver has none, with 64.00 MiB free on the GPU");
    EXPECT_EQ(memory.held(), 0U);
    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
  }
  EXPECT_EQ(memory.make(kMemory + 2 * kMiB).data, nullptr);
}

TEST_F(VirtualMemoryTest, WhatFailsOtherwiseThrowsAndLeavesNothing) {
  VirtualMemory memory(0, all);
  for (const char* function : kMaking) {
    SCOPED_TRACE(function);
    cuda_on_host::inject({.function = function, .error = cudaErrorInvalidValue});

    EXPECT_THROW(memory.make(2 * kMiB), CudaError);

    EXPECT_EQ(memory.held(), 0U);
    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
  }
}

TEST_F(VirtualMemoryTest, AnErrorThatStaysLosesTheDevice) {
  VirtualMemory memory(0, all);
  cuda_on_host::inject({.function = "cuMemMap", .error = cudaErrorIllegalAddress, .sticky = true});

  EXPECT_THROW(memory.make(2 * kMiB), DeviceLostError);
}

TEST_F(VirtualMemoryTest, LeavesWhatOthersMayNeed) {
  VirtualMemory memory(0, [](Bytes /*held*/) { return 10 * kMiB; });
  const auto first = memory.make(6 * kMiB);

  const auto refused = memory.make(6 * kMiB);

  EXPECT_EQ(refused.data, nullptr);
  EXPECT_EQ(refused.refusal,
            "of 58.00 MiB free on the GPU, NCCL and kernels that are loaded later may need what is "
            "beyond 4.00 MiB");
  const auto second = memory.make(4 * kMiB);
  EXPECT_NE(second.data, nullptr);
  memory.give_back(first.data, 6 * kMiB);
  memory.give_back(second.data, 4 * kMiB);
}

TEST_F(VirtualMemoryTest, SegmentsInAnyOrderLeaveNoGap) {
  VirtualMemory memory(0, all);
  std::vector<void*> small;
  for (Bytes taken = 0; taken < kMemory; taken += 2 * kMiB) {
    small.push_back(memory.make(2 * kMiB).data);
    ASSERT_NE(small.back(), nullptr);
  }
  for (std::size_t i = 0; i < small.size(); i += 2) memory.give_back(small[i], 2 * kMiB);

  const auto large = memory.make(kMemory / 2);

  EXPECT_NE(large.data, nullptr);
  for (std::size_t i = 1; i < small.size(); i += 2) memory.give_back(small[i], 2 * kMiB);
  memory.give_back(large.data, kMemory / 2);
}

TEST_F(VirtualMemoryTest, IsAvailableUnlessGpuDriverOrPagesAreUnfit) {
  EXPECT_EQ(VirtualMemory::why_unavailable(0), "");
  EXPECT_EQ(VirtualMemory::why_unavailable(
                0, {.path = "", .problem = "libcuda.so.1 is too old", .handle = nullptr}),
            "libcuda.so.1 is too old");
  cuda_on_host::set_up({.page_bytes = 4 * kMiB});
  EXPECT_EQ(VirtualMemory::why_unavailable(0), "the GPU's memory comes in units of 4.00 MiB");
  cuda_on_host::set_up({.page_bytes = 64 << 10U});
  EXPECT_EQ(VirtualMemory::why_unavailable(0), "");
  cuda_on_host::set_up({.virtual_memory = false});
  EXPECT_EQ(VirtualMemory::why_unavailable(0), "the GPU has no virtual memory management");
}

TEST_F(VirtualMemoryTest, IsNotAvailableWhereATrialFails) {
  for (const char* function : kMaking) {
    cuda_on_host::inject({.function = function, .error = cudaErrorNotSupported});

    const std::string reason = VirtualMemory::why_unavailable(0);

    EXPECT_NE(reason.find("cudaErrorNotSupported"), std::string::npos) << function << reason;
    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
  }
  cuda_on_host::inject({.function = "cuMemCreate", .error = cudaErrorMemoryAllocation});
  EXPECT_THROW(VirtualMemory::why_unavailable(0), OutOfMemoryError);
}

}  // namespace
}  // namespace dstune::cuda::virtual_memory_test
