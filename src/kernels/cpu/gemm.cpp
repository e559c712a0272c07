#include <algorithm>
#include <cassert>

#include "kernels/cpu/blas.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// A rectangle of a matrix.
struct Block {
  std::int64_t row;
  std::int64_t col;
  std::int64_t rows;
  std::int64_t cols;
};

/// The block of `a` whose transpose (if so) covers rows [row, ...) and columns [col, ...) of op(a).
Block stored_block(Transpose transpose, Block block) {
  if (transpose == Transpose::no) return block;
  return {block.col, block.row, block.cols, block.rows};
}

Panel fp32_panel(Matrix matrix, Block block) {
  return {row<float>(matrix, block.row) + block.col, matrix.stride};
}

Panel load(Matrix matrix, Block block, float* scratch) {
  with_type(matrix.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      convert(row<T>(matrix, block.row + i) + block.col, scratch + i * block.cols, block.cols);
    }
  });
  return {scratch, block.cols};
}

void store(Panel panel, Matrix matrix, Block block) {
  with_type(matrix.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      convert(panel.data + i * panel.stride, row<T>(matrix, block.row + i) + block.col, block.cols);
    }
  });
}

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

Sizes sizes_of(Transpose transpose_a, [[maybe_unused]] Transpose transpose_b, Matrix a,
               [[maybe_unused]] Matrix b, Matrix c) {
  const std::int64_t k = transpose_a == Transpose::no ? a.cols : a.rows;
  assert((transpose_a == Transpose::no ? a.rows : a.cols) == c.rows);
  assert((transpose_b == Transpose::no ? b.cols : b.rows) == c.cols);
  assert((transpose_b == Transpose::no ? b.rows : b.cols) == k);
  return {c.rows, c.cols, k};
}

/// The largest piece of a product between two ticks: the longest dimension is cut, so that the
/// panels stay as square as they are.
Sizes piece_of(Sizes whole) {
  constexpr double kFlop = 4e9;
  Sizes piece = whole;
  const auto flop = [&] {
    return 2.0 * static_cast<double>(piece.m) * static_cast<double>(piece.n) *
           static_cast<double>(piece.k);
  };
  while (flop() > kFlop) {
    std::int64_t* longest = &piece.m;
    if (piece.n > *longest) longest = &piece.n;
    if (piece.k > *longest) longest = &piece.k;
    *longest = (*longest + 1) / 2;
  }
  return piece;
}

/// f(row, col, depth, piece) over all pieces; depth innermost and from 0.
template <class F>
void for_pieces(const Device& device, Sizes whole, Sizes piece, F&& f) {
  for (std::int64_t j = 0; j < whole.n; j += piece.n) {
    for (std::int64_t i = 0; i < whole.m; i += piece.m) {
      for (std::int64_t l = 0; l < whole.k; l += piece.k) {
        device.tick();
        f(i, j, l,
          Sizes{std::min(piece.m, whole.m - i), std::min(piece.n, whole.n - j),
                std::min(piece.k, whole.k - l)});
      }
    }
  }
}

}  // namespace

void CpuDevice::gemm(Transpose transpose_a, Transpose transpose_b, Matrix a, Matrix b, double beta,
                     Matrix c) {
  assert(a.dtype == b.dtype && b.dtype == c.dtype);
  assert(beta == 0 || beta == 1);
  if (c.dtype == DType::fp32) {
    gemm_fp32(transpose_a, transpose_b, a, b, beta, c);
  } else {
    gemm_16bit(transpose_a, transpose_b, a, b, beta, c);
  }
}

void CpuDevice::gemm_fp32(Transpose transpose_a, Transpose transpose_b, Matrix a, Matrix b,
                          double beta, Matrix c) {
  const Sizes whole = sizes_of(transpose_a, transpose_b, a, b, c);
  for_pieces(*this, whole, piece_of(whole),
             [&](std::int64_t i, std::int64_t j, std::int64_t l, Sizes part) {
               const Product product{transpose_a,
                                     transpose_b,
                                     part.m,
                                     part.n,
                                     part.k,
                                     1.0F,
                                     l == 0 ? static_cast<float>(beta) : 1.0F};
               sgemm(product, fp32_panel(a, stored_block(transpose_a, {i, l, part.m, part.k})),
                     fp32_panel(b, stored_block(transpose_b, {l, j, part.k, part.n})),
                     fp32_panel(c, {i, j, part.m, part.n}));
             });
}

void CpuDevice::gemm_16bit(Transpose transpose_a, Transpose transpose_b, Matrix a, Matrix b,
                           double beta, Matrix c) {
  const Sizes whole = sizes_of(transpose_a, transpose_b, a, b, c);
  const Sizes piece{std::min<std::int64_t>(whole.m, 512), std::min<std::int64_t>(whole.n, 1024),
                    std::min<std::int64_t>(whole.k, 1024)};
  float* const a_scratch = scratch(piece.m * piece.k + piece.k * piece.n + piece.m * piece.n);
  float* const b_scratch = a_scratch + piece.m * piece.k;
  float* const c_scratch = b_scratch + piece.k * piece.n;
  for_pieces(*this, whole, piece, [&](std::int64_t i, std::int64_t j, std::int64_t l, Sizes part) {
    const Block c_block{i, j, part.m, part.n};
    if (l == 0 && beta != 0) load(c, c_block, c_scratch);
    const Product product{transpose_a,
                          transpose_b,
                          part.m,
                          part.n,
                          part.k,
                          1.0F,
                          l == 0 ? static_cast<float>(beta) : 1.0F};
    const Panel sums{c_scratch, part.n};
    sgemm(product, load(a, stored_block(transpose_a, {i, l, part.m, part.k}), a_scratch),
          load(b, stored_block(transpose_b, {l, j, part.k, part.n}), b_scratch), sums);
    if (l + part.k == whole.k) store(sums, c, c_block);
  });
}

}  // namespace dstune::cpu
