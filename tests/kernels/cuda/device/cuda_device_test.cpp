// How a GPU's host asks and waits, on CUDA on the host.
#include "kernels/cuda/device/cuda_device.hpp"

#include <utility>
#include <vector>

#include "core/device/operations/elementwise.hpp"
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

}  // namespace
}  // namespace dstune::cuda::cuda_device_test
