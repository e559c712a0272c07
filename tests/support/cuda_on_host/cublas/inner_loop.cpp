#include "tests/support/cuda_on_host/cublas/inner_loop.hpp"

namespace cuda_on_host {

void multiply_column(const float* a, const float* b, float* d, std::size_t rows,
                     std::size_t inner) {
  for (std::size_t k = 0; k < inner; ++k) {
    const float factor = b[k];
    const float* const column = a + k * rows;
    for (std::size_t i = 0; i < rows; ++i) d[i] += column[i] * factor;
  }
}

}  // namespace cuda_on_host
