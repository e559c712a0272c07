// The one BLAS routine that is used, on row-major fp32 panels.
#pragma once

#include <cstdint>

#include "core/device/operations/gemm.hpp"

namespace dstune::cpu {

/// Threads of the BLAS in this process; 1 unless a rank has more cores to itself. Does nothing for
/// a BLAS other than OpenBLAS, MKL and BLIS (set its own variable, e.g. OMP_NUM_THREADS).
void set_blas_threads(int threads);

/// Makes the BLAS take the memory that it keeps for itself, for all of its threads. Without any
/// left OpenBLAS neither fails nor ends: it tries again for ever. So to be called while there is
/// some; takes about a millisecond. (With several threads it also asks for some in each product,
/// and exits the process where there is none.)
void take_blas_memory();

/// Row-major fp32 elements, `stride` apart from row to row.
struct Panel {
  float* data = nullptr;
  std::int64_t stride = 0;
};

/// c(m, n) = alpha op(a)(m, k) op(b)(k, n) + beta c
struct Product {
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  float alpha = 1;
  float beta = 0;
};

void sgemm(const Product& product, Panel a, Panel b, Panel c);

}  // namespace dstune::cpu
