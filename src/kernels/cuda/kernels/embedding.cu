// Rows of a table by token, and the tokens of a decoder.
#include <cassert>

#include "core/device/operations/embedding.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/rows.cuh"
#include "kernels/cuda/kernels/sorted_rows.hpp"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 256;
constexpr int kMostWarps = 8;

template <class T, int kWidth>
__global__ void look_up_kernel(const std::int64_t* tokens, RowsOf<const T> table, RowsOf<T> out,
                               std::int64_t cols) {
  const T* const from = table[tokens[blockIdx.x]];
  T* const to = out[blockIdx.x];
  for (std::int64_t j = std::int64_t{threadIdx.x} * kWidth; j < cols;
       j += std::int64_t{blockDim.x} * kWidth) {
    store_pack(to + j, load_pack<kWidth>(from + j));
  }
}

template <class T>
struct Backward {
  SortedRows sorted;
  std::int64_t rows;
  RowsOf<const T> d_out;
  RowsOf<T> d_table;
  std::int64_t cols;
  std::int64_t tiles;  // of 32 packs of columns
};

template <int kWidth>
using Sums = Pack<float, kWidth>;

template <class T, int kWidth>
__device__ inline void add(Sums<kWidth>& sums, const Pack<T, kWidth>& pack) {
#pragma unroll
  for (int k = 0; k < kWidth; ++k) sums.values[k] += to_float(pack.values[k]);
}

/// sums += the columns from `column` of the sorted rows i, i + step ... that are of `token`. Some
/// are read before any is added, or each would wait for the one before.
template <class T, int kWidth>
__device__ void add_rows(Sums<kWidth>& sums, const Backward<T>& op, std::uint32_t token,
                         std::int64_t i, std::int64_t step, std::int64_t column) {
  constexpr int kAtOnce = 4;
  bool goes_on = true;
  for (; goes_on && i < op.rows; i += kAtOnce * step) {
    Pack<T, kWidth> packs[kAtOnce];
    bool is_own[kAtOnce];
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      const std::int64_t place = i + p * step;
      is_own[p] = place < op.rows && op.sorted.tokens[place] == token;
      if (is_own[p]) packs[p] = load_pack<kWidth>(op.d_out[op.sorted.rows[place]] + column);
    }
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      if (is_own[p]) add(sums, packs[p]);
      goes_on = is_own[p];
    }
  }
}

/// A block for each place among the sorted rows and each tile: that of a token's first row adds all
/// of them, each warp some; then one warp adds up the warps.
template <class T, int kWidth>
__global__ void __launch_bounds__(kMostWarps * 32) add_rows_kernel(Backward<T> op) {
  __shared__ Sums<kWidth> of_warps[kMostWarps][32];
  const std::int64_t first = blockIdx.x / op.tiles;
  const std::uint32_t token = op.sorted.tokens[first];
  if (first > 0 && op.sorted.tokens[first - 1] == token) return;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t column = (blockIdx.x % op.tiles * 32 + lane) * kWidth;
  T* const target = op.d_table[token] + column;
  Sums<kWidth> sums{};
  if (column < op.cols) {
    if (warp == 0) add(sums, load_pack<kWidth>(target));
    add_rows(sums, op, token, first + warp, warps, column);
  }
  of_warps[warp][lane] = sums;
  __syncthreads();
  if (warp != 0 || column >= op.cols) return;
  for (int w = 1; w < warps; ++w) add(sums, of_warps[w][lane]);
  Pack<T, kWidth> result;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) result.values[k] = from_float<T>(sums.values[k]);
  store_pack(target, result);
}

}  // namespace

void CudaDevice::compute(const Embedding& op) {
  assert(op.tokens.dtype == DType::int64 && op.tokens.numel == op.out.rows);
  assert(op.table.cols == op.out.cols && op.table.dtype == op.out.dtype);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    with_row_width<T>({op.table, op.out}, [&](auto width) {
      const int threads = threads_for_row(op.out.cols / width, 1, kMostThreads);
      launch(stream(), {op.out.rows, threads}, look_up_kernel<T, width>,
             elements<const std::int64_t>(op.tokens), rows_of<const T>(op.table),
             rows_of<T>(op.out), op.out.cols);
    });
  });
}

void CudaDevice::compute(const EmbeddingBackward& op) {
  const std::int64_t rows = op.d_out.rows;
  assert(op.tokens.dtype == DType::int64 && op.tokens.numel == rows);
  assert(op.d_table.cols == op.d_out.cols && op.d_table.dtype == op.d_out.dtype);
  if (rows == 0) return;
  const SortedRows sorted =
      sort_rows(stream(kMostSortLaunches), elements<const std::int64_t>(op.tokens), rows,
                op.d_table.rows, scratch<std::uint32_t>(), Gpu::kScratch);
  constexpr std::int64_t kRowsPerWarp = 256;  // before blocks have more warps for frequent tokens
  const int threads =
      threads_for_row((rows + kRowsPerWarp - 1) / kRowsPerWarp * 32, 1, kMostWarps * 32);
  with_type(op.d_out.dtype, [&]<class T>(std::type_identity<T>) {
    with_row_width<T>({op.d_out, op.d_table}, [&](auto width) {
      const std::int64_t tiles = (op.d_out.cols / width + 31) / 32;
      launch(stream(), {rows * tiles, threads}, add_rows_kernel<T, width>,
             Backward<T>{sorted, rows, rows_of<const T>(op.d_out), rows_of<T>(op.d_table),
                         op.d_out.cols, tiles});
    });
  });
}

namespace {

struct TokenBefore {
  const std::int64_t* labels;
  std::int64_t sequence;
  std::int64_t start;

  __device__ void operator()(std::int64_t i, std::int64_t& out) const {
    out = quotient(i, sequence) * sequence == i ? start : labels[i - 1];
  }
};

}  // namespace

void CudaDevice::compute(const ShiftTokens& op) {
  assert(op.labels.dtype == DType::int64 && op.out.dtype == DType::int64);
  assert(op.labels.numel == op.out.numel && op.out.numel % op.sequence == 0);
  for_each_element(stream(), op.out.numel,
                   TokenBefore{elements<const std::int64_t>(op.labels), op.sequence, op.start},
                   Out<std::int64_t>{elements<std::int64_t>(op.out)});
}

}  // namespace dstune::cuda
