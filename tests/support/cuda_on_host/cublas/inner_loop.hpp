// The inner loop of a matrix product, on memory of its own: compiled for speed, without sanitizers.
#pragma once

#include <cstddef>

namespace cuda_on_host {

/// d[i] += sum over k, ascending, of a[k * rows + i] * b[k].
void multiply_column(const float* a, const float* b, float* d, std::size_t rows, std::size_t inner);

}  // namespace cuda_on_host
