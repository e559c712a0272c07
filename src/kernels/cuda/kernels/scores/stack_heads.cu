#include <cassert>

#include "core/device/operations/attention.hpp"
#include "kernels/cuda/attention/head_shape.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

/// A place in heads one below the other.
struct Place {
  std::int64_t head;  // of all sequences
  std::int64_t row;
  std::int64_t column;

  __device__ Place(std::int64_t index, std::int64_t sequence, std::int64_t size) {
    const std::int64_t line = quotient(index, size);
    column = index - line * size;
    head = quotient(line, sequence);
    row = line - head * sequence;
  }
};

template <class T>
__device__ inline T* element_of(const HeadRows<T>& rows, const Place& at, std::int64_t sequence) {
  const std::int64_t batch = quotient(at.head, rows.heads);
  return rows.first + (batch * sequence + at.row) * rows.stride +
         (at.head - batch * rows.heads) * rows.head_stride + at.column;
}

template <class T>
struct Stack {
  HeadRows<const T> in;
  std::int64_t sequence;
  std::int64_t size;
  std::int64_t times;

  __device__ void operator()(std::int64_t index, float& out) const {
    Place at(index, sequence, size);
    at.head = quotient(at.head, times);
    out = to_float(*element_of(in, at, sequence));
  }
};

// A thread makes an element of the result.
template <class T>
__global__ void spread_kernel(std::int64_t count, const T* in, HeadRows<T> out,
                              std::int64_t sequence, std::int64_t size, std::int64_t times) {
  const std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (index >= count) return;
  const Place at(index, sequence, size);
  float sum = 0;
  for (std::int64_t head = at.head * times; head < (at.head + 1) * times; ++head) {
    sum += to_float(in[(head * sequence + at.row) * size + at.column]);
  }
  *element_of(out, at, sequence) = from_float<T>(sum);
}

}  // namespace

void CudaDevice::compute(const StackHeads& op) {
  const AttentionShape& shape = op.shape;
  assert(op.out.rows == shape.rows() * shape.heads && op.out.stride == shape.head_size);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const Stack<T> stack{head_rows<const T>(op.in, op.heads), shape.sequence, shape.head_size,
                         shape.heads / op.heads};
    for_each_element(stream(), op.out.numel(), stack, Out<T>{static_cast<T*>(op.out.data)});
  });
}

void CudaDevice::compute(const SpreadHeads& op) {
  const AttentionShape& shape = op.shape;
  assert(op.in.rows == shape.rows() * shape.heads && op.in.stride == shape.head_size);
  const std::int64_t count = shape.rows() * op.heads * shape.head_size;
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream(), cover(count, kElementThreads), spread_kernel<T>, count,
           static_cast<const T*>(op.in.data), head_rows<T>(op.out, op.heads), shape.sequence,
           shape.head_size, shape.heads / op.heads);
  });
}

}  // namespace dstune::cuda
