// Scores by how far a key is from its query.
#include <algorithm>
#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"
#include "kernels/scores.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const FillDistances& op) {
  assert(op.out.dtype == DType::int64 && op.out.numel == op.sequence * op.sequence);
  auto* const out = elements<std::int64_t>(op.out);
  const DistanceBucket<VectorMath> bucket(op);
  for (std::int64_t i = 0; i < op.sequence; ++i) {
    for (std::int64_t j = 0; j < op.sequence; ++j) out[i * op.sequence + j] = bucket.of(i - j);
  }
}

void CpuDevice::compute(const ShiftDistances& op) {
  assert(op.in.dtype == DType::int64 && op.out.dtype == DType::int64);
  assert(op.in.numel == op.out.numel);
  const auto* const in = elements<std::int64_t>(op.in);
  auto* const out = elements<std::int64_t>(op.out);
  for (std::int64_t i = 0; i < op.out.numel; ++i) {
    out[i] = std::clamp<std::int64_t>(op.sign * in[i] + op.span, 0, 2 * op.span - 1);
  }
}

namespace {

/// d_out(row, j) for every j: `step` elements from one to the next.
template <class T>
struct Gradients {
  const T* first;
  std::int64_t step;
};

template <class T>
Gradients<T> gradients_of(const GatherColumnsBackward& op, std::int64_t at, std::int64_t period) {
  if (!op.transposed) return {row<const T>(op.d_out, at), 1};
  const std::int64_t i = at % period;
  return {row<const T>(op.d_out, at - i) + i, period};
}

constexpr std::int64_t kTile = 32;

/// Adds the transposed of a matrix (size, size), tile by tile, so that both stay in the cache.
template <class T>
void add_transposed(T* inout, const T* other, std::int64_t size) {
  for (std::int64_t i0 = 0; i0 < size; i0 += kTile) {
    for (std::int64_t j0 = 0; j0 < size; j0 += kTile) {
      for (std::int64_t i = i0; i < std::min(size, i0 + kTile); ++i) {
        for (std::int64_t j = j0; j < std::min(size, j0 + kTile); ++j) {
          T& sum = inout[i * size + j];
          sum = from_float<T>(to_float(sum) + to_float(other[j * size + i]));
        }
      }
    }
  }
}

}  // namespace

void CpuDevice::compute(const GatherColumns& op) {
  const Matrix in = op.in;
  const Matrix out = op.out;
  assert(in.rows == out.rows && in.dtype == out.dtype && op.index.dtype == DType::int64);
  const auto* const index = elements<std::int64_t>(op.index);
  const std::int64_t period = op.index.numel / out.cols;
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, out.rows, out.cols, [=](std::int64_t at) {
      const T* const from = row<const T>(in, at);
      T* const to = row<T>(out, at);
      const std::int64_t* const columns = index + at % period * out.cols;
      for (std::int64_t j = 0; j < out.cols; ++j) to[j] = from[columns[j]];
    });
  });
}

void CpuDevice::compute(const GatherColumnsBackward& op) {
  const Matrix d_in = op.d_in;
  const std::int64_t cols = op.d_out.cols;
  const std::int64_t period = op.index.numel / cols;
  assert(op.d_out.rows == d_in.rows && op.d_out.dtype == d_in.dtype);
  assert(!op.transposed || period == cols);
  const auto* const index = elements<std::int64_t>(op.index);
  float* const sums = scratch(d_in.cols);
  with_type(d_in.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, d_in.rows, d_in.cols, [=](std::int64_t at) {
      const auto [d_out, step] = gradients_of<T>(op, at, period);
      const std::int64_t* const columns = index + at % period * cols;
      std::fill_n(sums, d_in.cols, 0.0F);
      for (std::int64_t j = 0; j < cols; ++j) sums[columns[j]] += to_float(d_out[j * step]);
      convert(sums, row<T>(d_in, at), d_in.cols);
    });
  });
}

void CpuDevice::compute(const AddTransposed& op) {
  const std::int64_t square = op.size * op.size;
  assert(op.inout.numel == op.other.numel && op.inout.dtype == op.other.dtype);
  assert(op.inout.numel % square == 0);
  with_type(op.inout.dtype, [&]<class T>(std::type_identity<T>) {
    T* const inout = elements<T>(op.inout);
    const T* const other = elements<T>(op.other);
    const std::int64_t size = op.size;
    for_rows(*this, op.inout.numel / square, square,
             [=](std::int64_t n) { add_transposed(inout + n * square, other + n * square, size); });
  });
}

}  // namespace dstune::cpu
