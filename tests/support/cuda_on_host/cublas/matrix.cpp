#include "tests/support/cuda_on_host/cublas/matrix.hpp"

#include <bit>
#include <cstdint>

#include "tests/support/cuda_on_host/cublas/inner_loop.hpp"
#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/include/cuda_bf16.h"
#include "tests/support/cuda_on_host/include/cuda_fp16.h"

namespace cuda_on_host {
namespace {

/// To the nearest, ties away from zero, as the device converts.
float to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7f800000U) == 0x7f800000U) return value;
  return std::bit_cast<float>((bits + 0x1000U) & 0xffffe000U);
}

template <class Use>
void with_type(cudaDataType type, Use use) {
  switch (type) {
    case CUDA_R_32F:
      return use(float{});
    case CUDA_R_16F:
      return use(__half(0.0F));
    case CUDA_R_16BF:
      return use(__nv_bfloat16(0.0F));
    default:
      misuse("cublasLtMatmul of a type that is not supported");
  }
}

std::ptrdiff_t start_of(const Layout& layout, int index) {
  return static_cast<std::ptrdiff_t>(layout.batch_stride) * (layout.batch > 1 ? index : 0);
}

template <class T>
void load_columns(Matrix& matrix, const T* data, std::size_t ld, bool transposed) {
  for (std::size_t column = 0; column < matrix.columns; ++column) {
    for (std::size_t row = 0; row < matrix.rows; ++row) {
      const T value = transposed ? data[row * ld + column] : data[column * ld + row];
      matrix.values[column * matrix.rows + row] = static_cast<float>(value);
    }
  }
}

}  // namespace

Matrix load(const void* data, const Layout& layout, int index, cublasOperation_t op, bool tf32) {
  const bool transposed = op != CUBLAS_OP_N;
  Matrix matrix{
      transposed ? layout.columns : layout.rows, transposed ? layout.rows : layout.columns, {}};
  matrix.values.resize(matrix.rows * matrix.columns);
  with_type(layout.type, [&](auto element) {
    const auto* start = static_cast<const decltype(element)*>(data) + start_of(layout, index);
    load_columns(matrix, start, static_cast<std::size_t>(layout.ld), transposed);
  });
  if (tf32) {
    for (float& value : matrix.values) value = to_tf32(value);
  }
  return matrix;
}

void store(void* data, const Layout& layout, int index, const Matrix& matrix) {
  with_type(layout.type, [&](auto element) {
    using T = decltype(element);
    T* const start = static_cast<T*>(data) + start_of(layout, index);
    for (std::size_t column = 0; column < matrix.columns; ++column) {
      T* const target = start + column * static_cast<std::size_t>(layout.ld);
      for (std::size_t row = 0; row < matrix.rows; ++row)
        target[row] = T(matrix.values[column * matrix.rows + row]);
    }
  });
}

Matrix multiply(const Matrix& a, const Matrix& b) {
  Matrix d{a.rows, b.columns, std::vector<float>(a.rows * b.columns)};
  for (std::size_t column = 0; column < d.columns; ++column) {
    multiply_column(a.values.data(), b.values.data() + column * b.rows,
                    d.values.data() + column * d.rows, a.rows, a.columns);
  }
  return d;
}

}  // namespace cuda_on_host
