#include "kernels/cpu/products/blas.hpp"

#include <vector>

#include DSTUNE_CBLAS_HEADER

extern "C" {
// Present in the BLAS that was linked, or null.
__attribute__((weak)) void openblas_set_num_threads(int threads);
// NOLINTNEXTLINE(readability-identifier-naming): MKL's name
__attribute__((weak)) void MKL_Set_Num_Threads(int threads);
__attribute__((weak)) void bli_thread_set_num_threads(long threads);  // BLIS's dim_t
}

namespace dstune::cpu {

void set_blas_threads(int threads) {
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(threads);
  if (MKL_Set_Num_Threads != nullptr) MKL_Set_Num_Threads(threads);
  if (bli_thread_set_num_threads != nullptr) bli_thread_set_num_threads(threads);
}

void take_blas_memory() {
  constexpr std::int64_t kSize = 256;  // OpenBLAS gives smaller products to one thread only
  std::vector<float> matrix(kSize * kSize, 1.0F);
  std::vector<float> result(kSize * kSize);
  const Panel panel{matrix.data(), kSize};
  sgemm({Transpose::no, Transpose::no, kSize, kSize, kSize}, panel, panel, {result.data(), kSize});
}

void sgemm(const Product& product, Panel a, Panel b, Panel c) {
  const auto order_of = [](Transpose t) { return t == Transpose::yes ? CblasTrans : CblasNoTrans; };
  cblas_sgemm(CblasRowMajor, order_of(product.transpose_a), order_of(product.transpose_b),
              static_cast<int>(product.m), static_cast<int>(product.n), static_cast<int>(product.k),
              product.alpha, a.data, static_cast<int>(a.stride), b.data, static_cast<int>(b.stride),
              product.beta, c.data, static_cast<int>(c.stride));
}

}  // namespace dstune::cpu
