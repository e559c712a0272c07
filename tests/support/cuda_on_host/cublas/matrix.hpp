// Matrices of any type as floats, column after column.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/support/cuda_on_host/cublas/descriptors.hpp"

namespace cuda_on_host {

struct Matrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<float> values;  ///< (columns, rows)
};

/// op(matrix) of batch `index`. `tf32`: rounded to 10 bits of mantissa.
Matrix load(const void* data, const Layout& layout, int index, cublasOperation_t op, bool tf32);

/// Rounds to the layout's type, to the nearest even.
void store(void* data, const Layout& layout, int index, const Matrix& matrix);

/// d = a b, sums over k in ascending order, in float.
Matrix multiply(const Matrix& a, const Matrix& b);

}  // namespace cuda_on_host
