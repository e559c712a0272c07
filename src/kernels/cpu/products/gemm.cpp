#include "core/device/operations/gemm.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <utility>

#include "core/device/host_overhead.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/products/onednn.hpp"

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

// Blocks of 16 bits are converted to fp32, this wide.
constexpr std::int64_t kMost16BitCols = kBlockElements;

/// Adds the bias of columns [block.col, ...) to the rows of `sums`.
void add_bias(const Tensor& bias, Panel sums, Block block) {
  with_type(bias.dtype, [&]<class T>(std::type_identity<T>) {
    std::array<float, kMost16BitCols> buffer;  // NOLINT(*-member-init): written by as_floats()
    const float* const values = as_floats(elements<T>(bias) + block.col, block.cols, buffer.data());
    for (std::int64_t i = 0; i < block.rows; ++i) {
      float* const sum = sums.data + i * sums.stride;
#pragma omp simd
      for (std::int64_t j = 0; j < block.cols; ++j) sum[j] += values[j];
    }
  });
}

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

Sizes sizes_of(const Gemm& op) {
  const std::int64_t k = op.transpose_a == Transpose::no ? op.a.cols : op.a.rows;
  assert((op.transpose_a == Transpose::no ? op.a.rows : op.a.cols) == op.c.rows);
  assert((op.transpose_b == Transpose::no ? op.b.cols : op.b.rows) == op.c.cols);
  assert((op.transpose_b == Transpose::no ? op.b.rows : op.b.cols) == k);
  return {op.c.rows, op.c.cols, k};
}

double flop_of(Sizes sizes) {
  return 2.0 * static_cast<double>(sizes.m) * static_cast<double>(sizes.n) *
         static_cast<double>(sizes.k);
}

/// The largest piece of a product between two ticks: the longest dimension is cut, so that the
/// panels stay as square as they are.
Sizes piece_of(Sizes whole) {
  constexpr double kFlop = 4e9;
  Sizes piece = whole;
  while (flop_of(piece) > kFlop) {
    std::int64_t* longest = &piece.m;
    if (piece.n > *longest) longest = &piece.n;
    if (piece.k > *longest) longest = &piece.k;
    *longest = (*longest + 1) / 2;
  }
  return piece;
}

/// The piece of a product of bf16, which is quicker. Rows alone are cut: oneDNN packs a piece's B
/// again, its quick kernels want rows of C without gaps, and sums are rounded once.
Sizes piece_of_bf16(Sizes whole) {
  constexpr double kFlop = 32e9;
  Sizes piece = whole;
  while (flop_of(piece) > kFlop && piece.m > 1) piece.m = (piece.m + 1) / 2;
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

Matrix part_of(Matrix matrix, Block block) {
  matrix.data =
      static_cast<std::byte*>(matrix.data) +
      (block.row * matrix.stride + block.col) * static_cast<std::int64_t>(size_of(matrix.dtype));
  matrix.rows = block.rows;
  matrix.cols = block.cols;
  return matrix;
}

void advance(Matrix& matrix, std::int64_t elements) {
  matrix.data = static_cast<std::byte*>(matrix.data) +
                elements * static_cast<std::int64_t>(size_of(matrix.dtype));
}

/// f(product) for each.
template <class F>
void for_batch(Gemm op, F&& f) {
  const Batch batch = std::exchange(op.batch, {});
  for (std::int64_t i = 0; i < batch.count; ++i) {
    f(op);
    advance(op.a, batch.a_step);
    advance(op.b, batch.b_step);
    advance(op.c, batch.c_step);
  }
}

}  // namespace

// Where the training's library is slower, the step waits until its time has passed: the order of
// configurations is the training's.
void CpuDevice::compute(const Gemm& op) {
  const Seconds begin = now();
  multiply(op);
  const ProductRate* rate = product_rate(host_overhead(), op.a.dtype, products_.threads());
  if (rate == nullptr) return;
  const Work work = work_of(op);
  wait_until(begin + rate->latency + work.flops / rate->flops_per_s +
             static_cast<double>(work.written_bytes()) * rate->result_byte);
}

void CpuDevice::multiply(const Gemm& op) {
  assert(op.a.dtype == op.b.dtype && (op.c.dtype == op.b.dtype || op.c.dtype == DType::fp32));
  assert(op.beta == 0 || op.beta == 1);
  assert(!op.bias || (op.bias->dtype == op.c.dtype && op.bias->numel == op.c.cols));
  if (op.batch.count > 1) {
    for_batch(op, [this](const Gemm& single) { multiply(single); });
  } else if (op.a.dtype == DType::fp32) {
    gemm_fp32(op);
  } else if (op.a.dtype == DType::bf16 && products_.multiplies_bf16()) {
    gemm_bf16(op);
  } else {
    gemm_16bit(op);
  }
}

void CpuDevice::gemm_fp32(const Gemm& op) {
  const Sizes whole = sizes_of(op);
  for_pieces(*this, whole, piece_of(whole),
             [&](std::int64_t i, std::int64_t j, std::int64_t l, Sizes part) {
               const Product product{op.transpose_a,
                                     op.transpose_b,
                                     part.m,
                                     part.n,
                                     part.k,
                                     1.0F,
                                     l == 0 ? static_cast<float>(op.beta) : 1.0F};
               const Block c_block{i, j, part.m, part.n};
               const Panel c = fp32_panel(op.c, c_block);
               products_.sgemm(
                   product, fp32_panel(op.a, stored_block(op.transpose_a, {i, l, part.m, part.k})),
                   fp32_panel(op.b, stored_block(op.transpose_b, {l, j, part.k, part.n})), c);
               if (op.bias && l + part.k == whole.k) add_bias(*op.bias, c, c_block);
             });
}

void CpuDevice::gemm_bf16(const Gemm& op) {
  const Sizes whole = sizes_of(op);
  for_pieces(*this, whole, piece_of_bf16(whole),
             [&](std::int64_t i, std::int64_t /*j*/, std::int64_t /*l*/, Sizes part) {
               Gemm piece = op;
               piece.a = part_of(op.a, stored_block(op.transpose_a, {i, 0, part.m, part.k}));
               piece.c = part_of(op.c, {i, 0, part.m, part.n});
               products_.onednn().multiply(piece);
             });
}

void CpuDevice::gemm_16bit(const Gemm& op) {
  const Sizes whole = sizes_of(op);
  const Sizes piece{std::min<std::int64_t>(whole.m, 512), std::min(whole.n, kMost16BitCols),
                    std::min<std::int64_t>(whole.k, 1024)};
  float* const a_scratch = scratch(piece.m * piece.k + piece.k * piece.n + piece.m * piece.n);
  float* const b_scratch = a_scratch + piece.m * piece.k;
  float* const c_scratch = b_scratch + piece.k * piece.n;
  for_pieces(*this, whole, piece, [&](std::int64_t i, std::int64_t j, std::int64_t l, Sizes part) {
    const Block c_block{i, j, part.m, part.n};
    if (l == 0 && op.beta != 0) load(op.c, c_block, c_scratch);
    const Product product{op.transpose_a,
                          op.transpose_b,
                          part.m,
                          part.n,
                          part.k,
                          1.0F,
                          l == 0 ? static_cast<float>(op.beta) : 1.0F};
    const Panel sums{c_scratch, part.n};
    products_.sgemm(
        product, load(op.a, stored_block(op.transpose_a, {i, l, part.m, part.k}), a_scratch),
        load(op.b, stored_block(op.transpose_b, {l, j, part.k, part.n}), b_scratch), sums);
    if (l + part.k < whole.k) return;
    if (op.bias) add_bias(*op.bias, sums, c_block);
    store(sums, op.c, c_block);
  });
}

}  // namespace dstune::cpu
