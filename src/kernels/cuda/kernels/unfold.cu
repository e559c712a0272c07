#include <cassert>

#include "core/device/operations/rows.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

/// The rows of the narrow matrix (M, columns), `width` of which lie in one of the wide one.
template <class T>
struct Rows {
  const T* first;
  std::int64_t stride;
  std::int64_t sequence;
  std::int64_t columns;
  std::int64_t width;

  /// True if the row `offset` behind `row` is of the same sequence.
  __device__ bool has(std::int64_t row, std::int64_t offset) const {
    const std::int64_t place = row - quotient(row, sequence) * sequence + offset;
    return place >= 0 && place < sequence;
  }
};

template <class T>
struct UnfoldRows {
  Rows<T> in;

  __device__ void operator()(std::int64_t at, float& out) const {
    const std::int64_t element = quotient(at, in.width);
    const std::int64_t row = quotient(element, in.columns);
    const std::int64_t offset = at - element * in.width - in.width / 2;
    out = 0;
    if (!in.has(row, offset)) return;
    out = to_float(in.first[(row + offset) * in.stride + element - row * in.columns]);
  }
};

template <class T>
struct FoldRows {
  Rows<T> in;

  __device__ void operator()(std::int64_t at, float& out) const {
    const std::int64_t row = quotient(at, in.columns);
    const std::int64_t column = at - row * in.columns;
    out = 0;
    for (std::int64_t tap = 0; tap < in.width; ++tap) {
      const std::int64_t offset = in.width / 2 - tap;
      if (!in.has(row, offset)) continue;
      out += to_float(in.first[(row + offset) * in.stride + column * in.width + tap]);
    }
  }
};

}  // namespace

void CudaDevice::compute(const Unfold& op) {
  const std::int64_t width = op.out.cols / op.in.cols;
  assert(op.in.rows == op.out.rows && op.in.dtype == op.out.dtype && width % 2 == 1);
  assert(op.out.stride == op.out.cols);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const Rows<T> rows{elements<const T>(op.in), op.in.stride, op.sequence, op.in.cols, width};
    for_each_element(stream(), op.out.numel(), UnfoldRows<T>{rows}, Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const Fold& op) {
  const std::int64_t width = op.in.cols / op.out.cols;
  assert(op.in.rows == op.out.rows && op.in.dtype == op.out.dtype && width % 2 == 1);
  assert(op.out.stride == op.out.cols);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const Rows<T> rows{elements<const T>(op.in), op.in.stride, op.sequence, op.out.cols, width};
    for_each_element(stream(), op.out.numel(), FoldRows<T>{rows}, Out<T>{elements<T>(op.out)});
  });
}

}  // namespace dstune::cuda
