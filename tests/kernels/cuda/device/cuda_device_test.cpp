// How a GPU's host asks and waits, on CUDA on the host.
#include "kernels/cuda/device/cuda_device.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "core/device/operations/elementwise.hpp"
#include "core/device/scalar.hpp"
#include "tests/kernels/cuda/collectives/rank_gpu.hpp"

namespace dstune::cuda::cuda_device_test {
namespace {

class CudaDeviceTest : public OnHostTest {
 protected:
  CudaDevice& device() { return own_.device; }
  Buffer buffer() { return Buffer(device(), MemoryCategory::temporaries, 8); }

  RankGpu own_{0};
};

TEST_F(CudaDeviceTest, AsksForNoEventBehindOneThatHasNotPassed) {
  constexpr int kBuffers = 10;
  std::vector<Buffer> used;
  for (int i = 0; i < kBuffers; ++i) used.push_back(buffer());
  cuda_on_host::hang_at("cudaMemsetAsync", 1);
  {
    const StreamScope scope(device(), Stream::gather);
    device().run(FillZero{used.front().tensor(DType::fp32)});
  }
  for (Buffer& one : used) one.used_on(Stream::gather);
  used.clear();
  const auto before = cuda_on_host::calls("cudaEventQuery");

  const Buffer next = buffer();

  EXPECT_EQ(cuda_on_host::calls("cudaEventQuery"), before + 1);
  EXPECT_EQ(device().memory().in_use(), (kBuffers + 1) * 8U);
  cuda_on_host::release_hangs();
  device().synchronize();
  EXPECT_EQ(device().memory().in_use(), 8U);
}

TEST_F(CudaDeviceTest, FreesWhatOneStreamHasDoneWhileAnotherIsBehind) {
  Buffer gathered = buffer();
  Buffer reduced = buffer();
  gathered.used_on(Stream::gather);
  reduced.used_on(Stream::reduction);
  cuda_on_host::hang_at("cudaMemsetAsync", 1);
  {
    const StreamScope scope(device(), Stream::gather);
    device().run(FillZero{gathered.tensor(DType::fp32)});
  }
  gathered.reset();
  reduced.reset();
  device().host_wait(device().record(Stream::reduction));

  const Buffer next = buffer();

  EXPECT_EQ(device().memory().in_use(), 2 * 8U);
  cuda_on_host::release_hangs();
  device().synchronize();
}

TEST_F(CudaDeviceTest, ANumberIsCopiedBeforeTheHostWaits) {
  const Buffer number = buffer();
  device().run(FillConstant{number.tensor(DType::fp32), 3});
  cuda_on_host::hang_at("cudaMemcpyAsync", 1);
  device().on_tick([] {
    EXPECT_EQ(cuda_on_host::calls("cudaMemcpyAsync"), 1U);
    cuda_on_host::release_hangs();
  });

  EXPECT_EQ(device().read_scalar(number.tensor(DType::fp32).slice(0, 1), HostSync::norm), 3);

  EXPECT_EQ(device().ledger().syncs().size(), 1U);
  device().on_tick({});
}

constexpr Bytes kMiB = Bytes{1} << 20U;

class SegmentsTest : public CudaDeviceTest {
 protected:
  SegmentsTest() { device().memory().count_as(AllocatorModel::caching); }

  Buffer buffer(Bytes size) { return Buffer(device(), MemoryCategory::buckets, size); }
  /// Fills it on `stream`, which hangs there.
  void hang_in(const Buffer& buffer, Stream stream) {
    cuda_on_host::hang_at("cudaMemsetAsync", 1);
    const StreamScope scope(device(), stream);
    device().run(FillZero{buffer.tensor(DType::fp32)});
  }
};

TEST_F(SegmentsTest, BuffersLieInThem) {
  const Buffer small = buffer(8);
  const Buffer large = buffer(3 * kMiB);

  EXPECT_EQ(cuda_on_host::live().pages, 2);
  EXPECT_EQ(own_.gpu.in_use(), 22 * kMiB);
  EXPECT_EQ(device().memory().reserved(), 22 * kMiB);
  device().run(FillConstant{large.tensor(DType::fp32), 3});
  EXPECT_EQ(
      device().read_scalar(large.tensor(DType::fp32).slice(3 * kMiB / 4 - 1, 1), HostSync::norm),
      3);
}

TEST_F(SegmentsTest, ANumberAndABufferWithoutElementsLieBesideThem) {
  const Scalar number(device());
  const Buffer empty = buffer(0);

  EXPECT_EQ(cuda_on_host::live().pages, 0);
  EXPECT_EQ(own_.gpu.in_use(), 2 * Arena::kAlignment);
  number.set_zero();
  EXPECT_EQ(device().read_scalar(number.tensor(), HostSync::norm), 0);
}

TEST_F(SegmentsTest, ABlockIsUsedAgainByItsStreamAtOnceWithoutACall) {
  const void* const first = buffer(3 * kMiB).data();
  const auto calls = cuda_on_host::calls("");

  EXPECT_EQ(buffer(3 * kMiB).data(), first);

  EXPECT_EQ(cuda_on_host::calls(""), calls);
}

TEST_F(SegmentsTest, ABlockThatAnotherStreamStillUsesIsNobodysUntilThatIsDone) {
  Buffer gathered = buffer(3 * kMiB);
  const void* const data = gathered.data();
  hang_in(gathered, Stream::gather);
  gathered.used_on(Stream::gather);
  gathered.reset();

  EXPECT_NE(buffer(3 * kMiB).data(), data);

  cuda_on_host::release_hangs();
  device().synchronize();
  EXPECT_EQ(buffer(3 * kMiB).data(), data);
}

// PyTorch's cudaFree waits for the device too.
TEST_F(SegmentsTest, AreGivenBackAfterAWaitThatAnswersTheDispatcher) {
  {
    const StreamScope scope(device(), Stream::gather);
    const Buffer cached = buffer(30 * kMiB);
    hang_in(cached, Stream::gather);
  }
  const auto before = cuda_on_host::calls("cuMemUnmap");
  int ticks = 0;
  device().on_tick([&ticks, before] {
    EXPECT_EQ(cuda_on_host::calls("cuMemUnmap"), before) << "the stream still uses it";
    if (++ticks == 3) cuda_on_host::release_hangs();
  });

  const Buffer other = buffer(40 * kMiB);  // of 64 MiB

  EXPECT_GE(ticks, 3);
  EXPECT_EQ(cuda_on_host::calls("cuMemUnmap"), before + 1);
  EXPECT_EQ(device().memory().reserved(), 40 * kMiB);
  device().on_tick({});
}

TEST_F(SegmentsTest, OneThatIsRefusedIsAskedForAgainWhenTheCacheWasGivenBack) {
  {
    const StreamScope scope(device(), Stream::gather);
    buffer(30 * kMiB);
  }
  cuda_on_host::inject({.function = "cuMemCreate", .error = cudaErrorMemoryAllocation});

  const Buffer other = buffer(20 * kMiB);  // of 64 MiB

  EXPECT_EQ(device().memory().reserved(), 20 * kMiB);
  EXPECT_EQ(own_.gpu.in_use(), 20 * kMiB);
}

TEST_F(SegmentsTest, OneThatIsRefusedForGoodIsOutOfMemoryAndSaysWhy) {
  const Buffer in_use = buffer(30 * kMiB);
  for (std::uint64_t call : {1, 2}) {
    cuda_on_host::inject(
        {.function = "cuMemCreate", .call = call, .error = cudaErrorMemoryAllocation});
  }

  try {
    buffer(20 * kMiB);
    FAIL() << "there was a segment";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.requested, 20 * kMiB);
    EXPECT_EQ(error.in_use, 30 * kMiB);
    EXPECT_NE(error.refusal, "");
  }
  EXPECT_EQ(device().memory().in_use(), 30 * kMiB);
  EXPECT_TRUE(buffer(20 * kMiB));
}

TEST_F(SegmentsTest, WhatIsCountedExactlyLiesInThePiece) {
  device().memory().count_as(AllocatorModel::exact);

  const Buffer counted = CudaDeviceTest::buffer();

  EXPECT_EQ(cuda_on_host::live().pages, 0);
  EXPECT_EQ(own_.gpu.in_use(), Arena::kAlignment);
}

TEST_F(OnHostTest, WithoutVirtualMemoryThePieceHoldsWhatIsCountedAsSegments) {
  cuda_on_host::set_up({.bytes = kGpuMemory, .virtual_memory = false});
  RankGpu own(0);
  own.device.memory().count_as(AllocatorModel::caching);

  const Buffer buffer(own.device, MemoryCategory::buckets, 3 * kMiB);

  EXPECT_FALSE(own.device.memory().holds_segments());
  EXPECT_EQ(own.device.memory().reserved(), 20 * kMiB);
  EXPECT_EQ(own.gpu.in_use(), 3 * kMiB);
}

}  // namespace
}  // namespace dstune::cuda::cuda_device_test
