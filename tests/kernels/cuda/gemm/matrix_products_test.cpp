#include "kernels/cuda/gemm/matrix_products.hpp"

#include <string>
#include <vector>

#include <cublasLt.h>
#include <gtest/gtest.h>

#include "kernels/cuda/base/check.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda::matrix_products_test {

namespace {

constexpr const char* kHeuristic = "cublasLtMatmulAlgoGetHeuristic";

class MatrixProductsTest : public ::testing::Test {
 protected:
  MatrixProductsTest() {
    cuda_on_host::set_up({});
    DSTUNE_CUDA_CHECK(cudaMalloc(&memory_, 4096));
    DSTUNE_CUDA_CHECK(cudaMemset(memory_, 0, 4096));
    DSTUNE_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~MatrixProductsTest() override {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
    cudaFree(memory_);
  }

  /// C = A B + beta C with A at `offset` elements.
  Gemm gemm(std::int64_t size, double beta = 0, std::int64_t offset = 0) const {
    const auto matrix = [&](std::int64_t from) {
      return Matrix{static_cast<float*>(memory_) + from, size, size, DType::fp32, size};
    };
    return {.a = matrix(offset), .b = matrix(256), .beta = beta, .c = matrix(512)};
  }

  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(MatrixProductsTest, AnAlgorithmIsLookedUpOncePerShapeAndAlignment) {
  MatrixProducts products;

  for (int i = 0; i < 3; ++i) products.run(gemm(8), stream_);
  EXPECT_EQ(cuda_on_host::calls(kHeuristic), 1U);
  products.run(gemm(7), stream_);
  products.run(gemm(8, 1), stream_);
  products.run(gemm(8, 0, 1), stream_);
  products.run(gemm(7), stream_);

  EXPECT_EQ(cuda_on_host::calls(kHeuristic), 4U);
  EXPECT_EQ(cuda_on_host::calls("cublasLtMatmul"), 7U);
}

TEST_F(MatrixProductsTest, ProductsWithABiasShareAnAlgorithmAndHaveABiasEach) {
  MatrixProducts products;
  const std::vector<float> host{1, 2, 3, 4};
  auto* const biases = static_cast<float*>(memory_) + 768;
  DSTUNE_CUDA_CHECK(cudaMemcpy(biases, host.data(), 2 * sizeof(float), cudaMemcpyDefault));
  DSTUNE_CUDA_CHECK(cudaMemcpy(biases + 64, &host[2], 2 * sizeof(float), cudaMemcpyDefault));
  std::vector<float> results(8);

  for (std::size_t i = 0; i < 2; ++i) {
    Gemm op = gemm(2);
    op.bias = Tensor{biases + 64 * i, 2, DType::fp32};
    products.run(op, stream_);
    DSTUNE_CUDA_CHECK(cudaStreamSynchronize(stream_));
    DSTUNE_CUDA_CHECK(cudaMemcpy(&results[4 * i], op.c.data, 4 * sizeof(float), cudaMemcpyDefault));
  }

  EXPECT_EQ(results, (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(cuda_on_host::calls(kHeuristic), 1U);
  products.run(gemm(2), stream_);
  EXPECT_EQ(cuda_on_host::calls(kHeuristic), 2U);
}

TEST_F(MatrixProductsTest, AnEmptyProductIsNone) {
  MatrixProducts products;

  products.run(gemm(0), stream_);

  EXPECT_EQ(cuda_on_host::calls("cublasLtMatmul"), 0U);
}

TEST_F(MatrixProductsTest, AFailedProductNamesTheCallAndTheError) {
  MatrixProducts products;
  cuda_on_host::inject({.function = kHeuristic, .error = CUBLAS_STATUS_NOT_SUPPORTED});

  try {
    products.run(gemm(8), stream_);
    FAIL() << "no exception";
  } catch (const CudaError& error) {
    EXPECT_EQ(std::string(error.what()).rfind(std::string(kHeuristic) + ": CUBLAS_STATUS_", 0), 0U)
        << error.what();
  }
  products.run(gemm(8), stream_);
  EXPECT_EQ(cuda_on_host::calls("cublasLtMatmul"), 1U);
}

TEST(MatrixProducts, WorkspaceIsPyTorchsForTheGpu) {
  constexpr Bytes kMiB = Bytes{1} << 20U;
  for (const int major : {8, 9, 10}) {
    cuda_on_host::set_up({.major = major});

    EXPECT_EQ(MatrixProducts().workspace(), major >= 9 ? 32 * kMiB : 8 * kMiB + kMiB / 8);
  }
  EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
}

}  // namespace

}  // namespace dstune::cuda::matrix_products_test
