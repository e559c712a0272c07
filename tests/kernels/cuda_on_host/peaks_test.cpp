// What a GPU does at most, on CUDA on the host.
#include <optional>

#include <gtest/gtest.h>

#include "kernels/cuda/device/cuda_device.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda::peaks_test {
namespace {

constexpr Bytes kMemory = Bytes{1} << 30U;

TEST(PeaksOfAGpu, AreMeasuredOncePerTypeInMemoryThatIsGivenBack) {
  cuda_on_host::set_up({.bytes = kMemory});
  Gpu gpu(0);
  MatrixProducts products;
  CudaDevice first(gpu, products, kMemory / 2);
  const auto before = cuda_on_host::live();

  const auto peaks = first.peaks(DType::bf16);

  ASSERT_TRUE(peaks);
  EXPECT_GT(peaks->gemm_flops_per_s, 0);
  EXPECT_GT(peaks->copy_bytes_per_s, 0);
  EXPECT_EQ(cuda_on_host::live().bytes, before.bytes);
  EXPECT_EQ(first.memory().in_use(), 0);
  CudaDevice second(gpu, products, kMemory / 2);
  EXPECT_EQ(second.peaks(DType::bf16), peaks);
}

TEST(PeaksOfAGpu, AreAbsentWhereTheyFindNoRoom) {
  cuda_on_host::set_up({.bytes = kMemory});
  Gpu gpu(0);
  MatrixProducts products;
  CudaDevice device(gpu, products, kMemory / 2);
  cuda_on_host::inject({.function = "cudaMalloc", .call = 1, .error = cudaErrorMemoryAllocation});

  EXPECT_EQ(device.peaks(DType::bf16), std::nullopt);
}

}  // namespace
}  // namespace dstune::cuda::peaks_test
