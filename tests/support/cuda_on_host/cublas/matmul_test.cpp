// Products of cuBLASLt on the host beside plain loops: types, transpositions, strides, batches.
#include <array>
#include <cmath>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace matmul_test {
namespace {

using cuda_on_host::DeviceArray;
using cuda_on_host::TestStream;

struct Shape {
  std::uint64_t m = 5, n = 4, k = 7;
  std::int32_t batch = 1;
  std::int64_t padding = 2;  ///< of leading dimensions
  bool transpose_a = false, transpose_b = false;
};

template <class T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<__half> = CUDA_R_16F;
template <>
constexpr cudaDataType kType<__nv_bfloat16> = CUDA_R_16BF;

/// Columns of `rows` numbers and `ld` between them, a batch after another.
template <class T>
struct HostMatrix {
  HostMatrix(std::uint64_t rows_, std::uint64_t columns_, const Shape& shape, float first)
      : rows(rows_),
        columns(columns_),
        ld(static_cast<std::int64_t>(rows_) + shape.padding),
        batch(shape.batch) {
    for (std::int64_t i = 0; i < stride() * batch; ++i) {
      values.push_back(T(first + 0.25F * static_cast<float>(i * 7 % 13) - 1.5F));
    }
  }

  std::int64_t stride() const { return ld * static_cast<std::int64_t>(columns); }
  std::size_t at(std::uint64_t row, std::uint64_t column, std::int32_t index) const {
    return static_cast<std::size_t>(stride() * index + ld * static_cast<std::int64_t>(column)) +
           row;
  }
  cublasLtMatrixLayout_t layout() const {
    cublasLtMatrixLayout_t result = nullptr;
    cublasLtMatrixLayoutCreate(&result, kType<T>, rows, columns, ld);
    const std::int64_t step = stride();
    cublasLtMatrixLayoutSetAttribute(result, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                     sizeof batch);
    cublasLtMatrixLayoutSetAttribute(result, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                     sizeof step);
    return result;
  }

  std::uint64_t rows, columns;
  std::int64_t ld;
  std::int32_t batch;
  std::vector<T> values;
};

template <class In, class Out>
struct Operands {
  explicit Operands(const Shape& shape)
      : a(shape.transpose_a ? shape.k : shape.m, shape.transpose_a ? shape.m : shape.k, shape,
          0.5F),
        b(shape.transpose_b ? shape.n : shape.k, shape.transpose_b ? shape.k : shape.n, shape,
          0.25F),
        d(shape.m, shape.n, shape, 1.0F) {}
  HostMatrix<In> a, b;
  HostMatrix<Out> d;
};

template <class In, class Out>
std::vector<Out> expected(const Shape& shape, const Operands<In, Out>& operands, float alpha,
                          float beta) {
  auto result = operands.d.values;
  for (std::int32_t index = 0; index < shape.batch; ++index) {
    for (std::uint64_t row = 0; row < shape.m; ++row) {
      for (std::uint64_t column = 0; column < shape.n; ++column) {
        float sum = 0.0F;
        for (std::uint64_t k = 0; k < shape.k; ++k) {
          const auto at_a =
              shape.transpose_a ? operands.a.at(k, row, index) : operands.a.at(row, k, index);
          const auto at_b =
              shape.transpose_b ? operands.b.at(column, k, index) : operands.b.at(k, column, index);
          sum += float{operands.a.values[at_a]} * float{operands.b.values[at_b]};
        }
        Out& d = result[operands.d.at(row, column, index)];
        d = Out(alpha * sum + beta * float{d});
      }
    }
  }
  return result;
}

cublasStatus_t multiply(cublasLtHandle_t handle, const Shape& shape,
                        std::array<cublasLtMatrixLayout_t, 3> layouts, const void* a, const void* b,
                        void* d, float alpha, float beta, cudaStream_t stream,
                        cublasComputeType_t compute = CUBLAS_COMPUTE_32F,
                        const void* bias = nullptr) {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatmulDescCreate(&product, compute, CUDA_R_32F);
  const cublasOperation_t op_a = shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
  cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
  if (bias != nullptr) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                   sizeof epilogue);
    cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  }
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, product, layouts[0], layouts[1], layouts[2], layouts[2], nullptr, 1, &found, &count);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatmul(handle, product, &alpha, a, layouts[0], b, layouts[1], &beta, d,
                            layouts[2], d, layouts[2], &found.algo, nullptr, 0, stream);
  }
  cublasLtMatmulDescDestroy(product);
  for (cublasLtMatrixLayout_t layout : layouts) cublasLtMatrixLayoutDestroy(layout);
  return status;
}

template <class In, class Out>
void expect_product(const Shape& shape, float alpha = 1.0F, float beta = 0.0F) {
  const TestStream stream;
  cublasLtHandle_t handle = nullptr;
  cublasLtCreate(&handle);
  const Operands<In, Out> operands(shape);
  const DeviceArray<In> a(operands.a.values);
  const DeviceArray<In> b(operands.b.values);
  const DeviceArray<Out> d(operands.d.values);

  const cublasStatus_t status =
      multiply(handle, shape, {operands.a.layout(), operands.b.layout(), operands.d.layout()},
               a.data(), b.data(), d.data(), alpha, beta, stream.get());

  ASSERT_EQ(status, CUBLAS_STATUS_SUCCESS);
  stream.synchronise();
  const auto result = d.values();
  const auto wanted = expected(shape, operands, alpha, beta);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_EQ(float{result[i]}, float{wanted[i]}) << i;
  cublasLtDestroy(handle);
  EXPECT_EQ(cuda_on_host::live().library_handles, 0);
}

TEST(Matmul, multiplies_every_type) {
  expect_product<float, float>({});
  expect_product<__half, __half>({});
  expect_product<__nv_bfloat16, __nv_bfloat16>({});
  expect_product<__nv_bfloat16, float>({});
}

TEST(Matmul, transposes_either_operand) {
  expect_product<float, float>({.transpose_a = true});
  expect_product<float, float>({.transpose_b = true});
  expect_product<float, float>({.transpose_a = true, .transpose_b = true});
}

TEST(Matmul, adds_what_was_there_times_beta) { expect_product<float, float>({}, 0.5F, 2.0F); }

TEST(Matmul, adds_the_bias_to_every_column) {
  const TestStream stream;
  const Shape shape{.m = 2, .n = 3, .k = 1, .padding = 0};
  const DeviceArray<float> a(std::vector{1.0F, 2.0F});
  const DeviceArray<float> b(std::vector{1.0F, 2.0F, 3.0F});
  const DeviceArray<float> d(6);
  const DeviceArray<float> bias(std::vector{10.0F, 20.0F});

  multiply(
      nullptr, shape,
      {HostMatrix<float>(2, 1, shape, 0.0F).layout(), HostMatrix<float>(1, 3, shape, 0.0F).layout(),
       HostMatrix<float>(2, 3, shape, 0.0F).layout()},
      a.data(), b.data(), d.data(), 1.0F, 0.0F, stream.get(), CUBLAS_COMPUTE_32F, bias.data());

  stream.synchronise();
  EXPECT_EQ(d.values(), (std::vector{11.0F, 22.0F, 12.0F, 24.0F, 13.0F, 26.0F}));
}

TEST(Matmul, goes_through_a_strided_batch) {
  expect_product<float, float>({.batch = 3, .transpose_b = true});
}

TEST(Matmul, refuses_shapes_that_do_not_agree) {
  const TestStream stream;
  const Shape shape;
  const Operands<float, float> operands(shape);
  const HostMatrix<float> other(shape.k + 1, shape.n, shape, 0.0F);

  EXPECT_EQ(multiply(nullptr, shape, {operands.a.layout(), other.layout(), operands.d.layout()},
                     nullptr, nullptr, nullptr, 1.0F, 0.0F, stream.get()),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST(Matmul, rounds_to_tf32_where_that_is_allowed) {
  const TestStream stream;
  const Shape shape{.m = 1, .n = 1, .k = 1, .padding = 0};
  const HostMatrix<float> one(1, 1, shape, 0.0F);
  const DeviceArray<float> a(std::vector{1.0F + 0x1p-11F + 0x1p-12F});
  const DeviceArray<float> b(std::vector{1.0F});
  const DeviceArray<float> d(1);

  multiply(nullptr, shape, {one.layout(), one.layout(), one.layout()}, a.data(), b.data(), d.data(),
           1.0F, 0.0F, stream.get(), CUBLAS_COMPUTE_32F_FAST_TF32);

  stream.synchronise();
  EXPECT_EQ(d.values(), std::vector{1.0F + 0x1p-10F});
}

}  // namespace
}  // namespace matmul_test
