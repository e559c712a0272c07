// The piece of memory and the streams of a GPU, on CUDA on the host.
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

}  // namespace
}  // namespace dstune::cuda::gpu_test
