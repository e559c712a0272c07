// Which experts tokens go to: a thread per row, or per pair of a token and an expert, since next to
// the experts' products all of it is little. The loss that balances them has sums in one order: a
// block adds up what one expert gets.
#include <cassert>
#include <cmath>
#include <limits>

#include "core/device/operations/routing.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"
#include "kernels/cuda/kernels/sorted_rows.hpp"
#include "kernels/cuda/kernels/sums.cuh"

namespace dstune::cuda {

namespace {

__device__ inline std::int64_t own_index() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

struct Choice {
  RowsOf<const float> scores;
  std::int64_t rows;
  std::int64_t experts;
  std::int64_t chosen;
  ExpertDraw draw;
  bool draws;
  RowsOf<float> values;
  std::int64_t* columns;

  __device__ float wish(std::int64_t row, std::int64_t expert) const {
    if (!draws) return scores[row][expert];
    const float number = drawn_number(draw, row * experts + expert);
    return log_popularity(draw, expert) - logf(-logf(number));
  }
};

// Each turn takes the largest wish behind the one that the turn before took.
__global__ void __launch_bounds__(kElementThreads) top_k_kernel(Choice choice) {
  const std::int64_t i = own_index();
  if (i >= choice.rows) return;
  float last = INFINITY;
  std::int64_t last_column = -1;
  for (std::int64_t turn = 0; turn < choice.chosen; ++turn) {
    float best = -INFINITY;
    std::int64_t column = -1;
    for (std::int64_t e = 0; e < choice.experts; ++e) {
      const float wish = choice.wish(i, e);
      const bool is_left = wish < last || (wish == last && e > last_column);
      if (is_left && (column < 0 || wish > best)) {
        best = wish;
        column = e;
      }
    }
    last = best;
    last_column = column;
    choice.columns[i * choice.chosen + turn] = column;
    choice.values[i][turn] = choice.scores[i][column];
  }
}

__global__ void __launch_bounds__(kElementThreads)
    top_k_backward_kernel(RowsOf<const float> d_values, const std::int64_t* columns,
                          std::int64_t chosen, RowsOf<float> d_scores, std::int64_t rows,
                          std::int64_t experts) {
  const std::int64_t i = own_index();
  if (i >= rows) return;
  for (std::int64_t e = 0; e < experts; ++e) d_scores[i][e] = 0;
  for (std::int64_t j = 0; j < chosen; ++j) {
    d_scores[i][columns[i * chosen + j]] = d_values[i][j];
  }
}

__global__ void __launch_bounds__(kElementThreads)
    divide_kernel(RowsOf<const float> in, float* sums, RowsOf<float> out, std::int64_t rows,
                  std::int64_t cols) {
  const std::int64_t i = own_index();
  if (i >= rows) return;
  float sum = 0;
  for (std::int64_t j = 0; j < cols; ++j) sum += in[i][j];
  sums[i] = sum;
  for (std::int64_t j = 0; j < cols; ++j) out[i][j] = in[i][j] / sum;
}

__global__ void __launch_bounds__(kElementThreads)
    divide_backward_kernel(RowsOf<const float> d_out, RowsOf<const float> in, const float* sums,
                           RowsOf<float> d_in, std::int64_t rows, std::int64_t cols) {
  const std::int64_t i = own_index();
  if (i >= rows) return;
  float dot = 0;
  for (std::int64_t j = 0; j < cols; ++j) dot += d_out[i][j] * in[i][j];
  const float sum = sums[i];
  const float common = dot / (sum * sum);
  for (std::int64_t j = 0; j < cols; ++j) d_in[i][j] = d_out[i][j] / sum - common;
}

/// The token of the pair at a place; the pair also learns where it is.
struct Place {
  std::int64_t chosen;
  std::int64_t* places;

  __device__ void operator()(std::int64_t place, std::uint32_t pair, std::int64_t& order,
                             std::int64_t& token) const {
    order = pair;
    token = quotient(pair, chosen);
    places[pair] = place;
  }
};

/// The place behind the last pair of each group, by halving. (std::upper_bound compiles for a GPU,
/// where its std::advance() then does nothing.)
struct EndOf {
  const std::uint32_t* experts;
  std::int64_t pairs;

  __device__ void operator()(std::int64_t group, std::int32_t& end) const {
    const auto key = static_cast<std::uint32_t>(group);
    std::int64_t first = 0;
    for (std::int64_t left = pairs; left > 0;) {
      const std::int64_t half = left / 2;
      if (experts[first + half] > key) {
        left = half;
      } else {
        first += half + 1;
        left -= half + 1;
      }
    }
    end = static_cast<std::int32_t>(first);
  }
};

Grid thread_per(std::int64_t count) { return cover(count, kElementThreads); }

}  // namespace

void CudaDevice::compute(const TopK& op) {
  assert(op.columns.dtype == DType::int64 && op.columns.numel == op.values.numel());
  launch(stream(), thread_per(op.scores.rows), top_k_kernel,
         Choice{rows_of<const float>(op.scores), op.scores.rows, op.scores.cols, op.values.cols,
                op.draw.value_or(ExpertDraw{}), op.draw.has_value(), rows_of<float>(op.values),
                elements<std::int64_t>(op.columns)});
}

void CudaDevice::compute(const TopKBackward& op) {
  assert(op.columns.numel == op.d_values.numel() && op.d_values.rows == op.d_scores.rows);
  launch(stream(), thread_per(op.d_scores.rows), top_k_backward_kernel,
         rows_of<const float>(op.d_values), elements<const std::int64_t>(op.columns),
         op.d_values.cols, rows_of<float>(op.d_scores), op.d_scores.rows, op.d_scores.cols);
}

void CudaDevice::compute(const DivideBySum& op) {
  assert(op.sums.numel == op.in.rows && op.in.rows == op.out.rows && op.in.cols == op.out.cols);
  launch(stream(), thread_per(op.in.rows), divide_kernel, rows_of<const float>(op.in),
         elements<float>(op.sums), rows_of<float>(op.out), op.in.rows, op.in.cols);
}

void CudaDevice::compute(const DivideBySumBackward& op) {
  assert(op.sums.numel == op.in.rows && op.in.rows == op.d_in.rows);
  launch(stream(), thread_per(op.in.rows), divide_backward_kernel, rows_of<const float>(op.d_out),
         rows_of<const float>(op.in), elements<const float>(op.sums), rows_of<float>(op.d_in),
         op.in.rows, op.in.cols);
}

void CudaDevice::compute(const SortByExpert& op) {
  const std::int64_t pairs = op.experts.numel;
  assert(op.order.numel == pairs && op.tokens.numel == pairs && op.places.numel == pairs);
  assert(op.ends.size() == static_cast<Bytes>(op.groups) * sizeof(std::int32_t));
  const SortedRows sorted =
      sort_rows(stream(kMostSortLaunches), elements<const std::int64_t>(op.experts), pairs,
                op.groups, scratch<std::uint32_t>(), Gpu::kScratch);
  for_each_element(stream(), pairs, Place{op.chosen, elements<std::int64_t>(op.places)},
                   In<std::uint32_t>{sorted.rows},
                   Out<std::int64_t>{elements<std::int64_t>(op.order)},
                   Out<std::int64_t>{elements<std::int64_t>(op.tokens)});
  for_each_element(stream(), op.groups, EndOf{sorted.tokens, pairs},
                   Out<std::int32_t>{elements<std::int32_t>(op.ends)});
}

namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads)
    add_routing_kernel(RowsOf<const T> probs, std::int64_t rows, const std::int64_t* experts,
                       std::int64_t pairs, float* counts, float* sums) {
  float count = 0;
  for (std::int64_t i = threadIdx.x; i < pairs; i += blockDim.x) {
    if (experts[i] == blockIdx.x) ++count;
  }
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
    sum += to_float(probs[i][blockIdx.x]);
  }
  count = sum_of_block(count);
  sum = sum_of_block(sum);
  if (threadIdx.x != 0) return;
  counts[blockIdx.x] += count;
  sums[blockIdx.x] += sum;
}

struct CountTimesSum {
  const float* counts;
  const float* sums;

  __device__ double operator()(std::int64_t expert) const {
    return static_cast<double>(counts[expert]) * static_cast<double>(sums[expert]);
  }
};

struct OfColumn {
  const float* counts;
  std::int64_t experts;
  float factor;

  __device__ void operator()(std::int64_t i, float& d) const {
    d = factor * counts[i - quotient(i, experts) * experts];
  }
};

double square(std::int64_t x) { return static_cast<double>(x) * static_cast<double>(x); }

}  // namespace

void CudaDevice::compute(const AddRouting& op) {
  assert(op.counts.numel == op.probs.cols && op.sums.numel == op.probs.cols);
  with_type(op.probs.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream(), {op.probs.cols, kThreads}, add_routing_kernel<T>, rows_of<const T>(op.probs),
           op.probs.rows, elements<const std::int64_t>(op.experts), op.experts.numel,
           elements<float>(op.counts), elements<float>(op.sums));
  });
}

void CudaDevice::compute(const BalanceLoss& op) {
  const double factor = op.factor * static_cast<double>(op.counts.numel) / square(op.rows);
  queue_sum(stream(kReductionLaunches), scratch<void>(), op.counts.numel,
            CountTimesSum{elements<const float>(op.counts), elements<const float>(op.sums)}, factor,
            elements<float>(op.loss));
}

void CudaDevice::compute(const BalanceLossBackward& op) {
  assert(op.d_probs.cols == op.counts.numel && op.d_probs.stride == op.d_probs.cols);
  const double factor = op.factor * static_cast<double>(op.counts.numel) / square(op.rows);
  with_type(op.d_probs.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(
        stream(), op.d_probs.numel(),
        OfColumn{elements<const float>(op.counts), op.counts.numel, static_cast<float>(factor)},
        Out<T>{elements<T>(op.d_probs)});
  });
}

}  // namespace dstune::cuda
