// The memory of buffers and the streams of a GPU, on CUDA on the host.
#include "kernels/cuda/device/gpu.hpp"

#include <gtest/gtest.h>

#include "kernels/cuda/base/check.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda::gpu_test {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;
constexpr Bytes kMemory = Bytes{2} << 30U;

class GpuTest : public testing::Test {
 protected:
  GpuTest() { cuda_on_host::set_up({.bytes = kMemory}); }
  ~GpuTest() override { EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}); }
};

class GpuPieceTest : public GpuTest {
 protected:
  /// What a piece for so much leaves free.
  static Bytes left_by(Gpu& gpu, Bytes limit) {
    void* const data = gpu.allocate(1, Stream::compute, limit);
    const Bytes free = device_space().free;
    gpu.free(data);
    return free;
  }
};

TEST_F(GpuPieceTest, LeavesWhatIsLoadedLaterHoweverMuchIsAskedFor) {
  Gpu gpu(0);

  EXPECT_EQ(left_by(gpu, kMemory), kLoadedLater);
}

TEST_F(GpuPieceTest, LeavesWhatNcclHasToCome) {
  Gpu gpu(0);
  gpu.leave_to_nccl({.taken = 0, .to_come = 300 * kMiB});

  EXPECT_EQ(left_by(gpu, kMemory), kLoadedLater + 300 * kMiB);
}

TEST_F(GpuPieceTest, ThatWasTakenSmallGrowsWhenOthersHaveGone) {
  Gpu gpu(0);
  DeviceMemory of_others = make_device_memory(kMemory / 2);
  EXPECT_EQ(gpu.allocate(kMemory / 2, Stream::compute, kMemory / 2), nullptr);
  of_others.reset();

  gpu.leave_to_nccl({});

  void* const data = gpu.allocate(kMemory / 2, Stream::compute, kMemory / 2);
  ASSERT_NE(data, nullptr);
  gpu.free(data);
}

TEST_F(GpuPieceTest, StaysWhileItIsInUseOrCannotGrow) {
  Gpu gpu(0);
  DeviceMemory of_others = make_device_memory(kMemory / 2);
  void* const data = gpu.allocate(1, Stream::compute, kMemory / 2);
  const auto taken = cuda_on_host::calls("cudaMalloc");
  gpu.leave_to_nccl({});
  EXPECT_EQ(gpu.allocate(kMemory / 2, Stream::compute, kMemory / 2), nullptr);
  of_others.reset();
  gpu.leave_to_nccl({});

  EXPECT_EQ(gpu.allocate(kMemory / 2, Stream::compute, kMemory / 2), nullptr);
  EXPECT_EQ(cuda_on_host::calls("cudaMalloc"), taken);
  gpu.free(data);
}

TEST_F(GpuPieceTest, AWaitThatFailedIsQueuedAgain) {
  constexpr Bytes kLimit = 8 * kMiB;
  const Bytes whole = with_slack(kLimit);  // else what is left knows the users too
  Gpu gpu(0);
  gpu.free(gpu.allocate(whole, Stream::gather, kLimit));
  cuda_on_host::inject({.function = "cudaStreamWaitEvent", .error = cudaErrorInvalidValue});
  EXPECT_THROW(gpu.allocate(whole, Stream::compute, kLimit), CudaError);
  const auto waits = cuda_on_host::calls("cudaStreamWaitEvent");

  gpu.free(gpu.allocate(whole, Stream::compute, kLimit));

  EXPECT_EQ(cuda_on_host::calls("cudaStreamWaitEvent"), waits + 1);
}

TEST_F(GpuTest, SegmentsLeaveWhatNcclHasToComeAndWhatIsLoadedLater) {
  Gpu gpu(0);
  gpu.leave_to_nccl({.taken = 0, .to_come = 300 * kMiB});
  const Bytes most = device_space().free - kLoadedLater - 300 * kMiB;
  const auto first = gpu.segments()->make(100 * kMiB);
  ASSERT_NE(first.data, nullptr);

  EXPECT_EQ(gpu.segments()->make(most - 98 * kMiB).data, nullptr);
  const auto rest = gpu.segments()->make(most - 100 * kMiB);

  EXPECT_NE(rest.data, nullptr);
  EXPECT_EQ(gpu.in_use(), most);
  gpu.segments()->give_back(first.data, 100 * kMiB);
  gpu.segments()->give_back(rest.data, most - 100 * kMiB);
  EXPECT_EQ(gpu.in_use(), 0U);
}

TEST_F(GpuTest, SegmentsGrowByWhatOthersGiveBack) {
  Gpu gpu(0);
  DeviceMemory of_others = make_device_memory(kMemory / 2);
  EXPECT_EQ(gpu.segments()->make(kMemory / 2).data, nullptr);
  of_others.reset();

  const auto segment = gpu.segments()->make(kMemory / 2);

  ASSERT_NE(segment.data, nullptr);
  gpu.segments()->give_back(segment.data, kMemory / 2);
}

TEST_F(GpuTest, WithoutVirtualMemoryHasNoSegmentsAndSaysWhy) {
  cuda_on_host::set_up({.bytes = kMemory, .virtual_memory = false});
  Gpu gpu(0);

  EXPECT_EQ(gpu.segments(), nullptr);
  EXPECT_EQ(gpu.why_no_segments(), "the GPU has no virtual memory management");
}

TEST_F(GpuTest, WhatLiesBesideSegmentsIsGivenBackThere) {
  Gpu gpu(0);
  void* const number = gpu.allocate_beside_segments(4, Stream::compute);
  void* const buffer = gpu.allocate(4, Stream::compute, 8 * kMiB);
  EXPECT_EQ(gpu.in_use(), 2 * Arena::kAlignment);

  gpu.free(number);
  gpu.free(buffer);

  EXPECT_EQ(gpu.in_use(), 0U);
  EXPECT_EQ(gpu.allocate_beside_segments(Gpu::kBesideSegments + 1, Stream::compute), nullptr);
}

}  // namespace
}  // namespace dstune::cuda::gpu_test
