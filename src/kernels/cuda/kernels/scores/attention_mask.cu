#include <cassert>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/scores.hpp"

namespace dstune::cuda {

namespace {

struct Hide {
  std::int64_t sequence;
  std::int64_t back;
  std::int64_t ahead;
  float lowest;

  __device__ void operator()(std::int64_t index, float& mask) const {
    const std::int64_t row = quotient(index, sequence);
    const std::int64_t query = row - quotient(row, sequence) * sequence;
    const std::int64_t key = index - row * sequence;
    mask = key >= query - back && key <= query + ahead ? 0.0F : lowest;
  }
};

template <class T>
struct PlusMask {
  const T* mask;
  std::int64_t square;  // of a head's scores
  std::int64_t heads;

  __device__ void operator()(std::int64_t index, float score, float& out) const {
    const std::int64_t head = quotient(index, square);
    out = score + to_float(mask[quotient(head, heads) * square + index - head * square]);
  }
};

struct TakeOut {
  const std::int8_t* mask;
  std::int64_t square;  // of a head's scores
  std::int64_t heads;
  float value;

  __device__ void operator()(std::int64_t index, float score, float& out) const {
    const std::int64_t head = quotient(index, square);
    const bool is_out = mask[quotient(head, heads) * square + index - head * square] != 0;
    out = is_out ? value : score;
  }
};

}  // namespace

void CudaDevice::compute(const FillMask& op) {
  const AttentionShape& shape = op.shape;
  assert(op.mask.numel == shape.rows() * shape.sequence);
  const Hide hide{shape.sequence, shape.back(), shape.ahead(), lowest_of(op.mask.dtype)};
  with_type(op.mask.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.mask.numel, hide, Out<T>{elements<T>(op.mask)});
  });
}

void CudaDevice::compute(const AddMask& op) {
  const AttentionShape& shape = op.shape;
  assert(op.mask.numel == shape.rows() * shape.sequence && op.mask.dtype == op.scores.dtype);
  assert(op.scores.numel == op.mask.numel * shape.heads && op.out.numel == op.scores.numel);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const PlusMask<T> plus{elements<T>(op.mask), shape.sequence * shape.sequence, shape.heads};
    for_each_element(stream(), op.out.numel, plus, In<T>{elements<T>(op.scores)},
                     Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const FillMasked& op) {
  const AttentionShape& shape = op.shape;
  assert(op.mask.numel == shape.rows() * shape.sequence && op.mask.dtype == DType::int8);
  assert(op.in.numel == op.mask.numel * shape.heads && op.out.numel == op.in.numel);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const TakeOut take_out{elements<std::int8_t>(op.mask), shape.sequence * shape.sequence,
                           shape.heads, op.with_lowest ? lowest_of(op.out.dtype) : 0.0F};
    for_each_element(stream(), op.out.numel, take_out, In<T>{elements<T>(op.in)},
                     Out<T>{elements<T>(op.out)});
  });
}

}  // namespace dstune::cuda
