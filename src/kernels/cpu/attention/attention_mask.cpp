#include <cassert>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/scores.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const FillMask& op) {
  const AttentionShape shape = op.shape;
  assert(op.mask.numel == shape.batch * shape.sequence * shape.sequence);
  const float lowest = lowest_of(op.mask.dtype);
  with_type(op.mask.dtype, [&]<class T>(std::type_identity<T>) {
    T* const mask = elements<T>(op.mask);
    for_rows(*this, shape.rows(), shape.sequence, [=](std::int64_t row) {
      const std::int64_t i = row % shape.sequence;
      for (std::int64_t j = 0; j < shape.sequence; ++j) {
        const bool sees = j >= i - shape.back() && j <= i + shape.ahead();
        mask[row * shape.sequence + j] = from_float<T>(sees ? 0 : lowest);
      }
    });
  });
}

void CpuDevice::compute(const AddMask& op) {
  const AttentionShape shape = op.shape;
  const std::int64_t square = shape.sequence * shape.sequence;
  assert(op.mask.numel == shape.batch * square && op.mask.dtype == op.scores.dtype);
  assert(op.scores.numel == shape.batch * shape.heads * square);
  assert(op.out.numel == op.scores.numel && op.out.dtype == op.scores.dtype);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const scores = elements<T>(op.scores);
    T* const out = elements<T>(op.out);
    for_rows(*this, shape.batch * shape.heads, square, [=, this](std::int64_t head) {
      const T* const mask = elements<T>(op.mask) + head / shape.heads * square;
      for_chunks(*this, square, [=](std::int64_t begin, std::int64_t end) {
        const std::int64_t first = head * square;
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) {
          out[first + i] = from_float<T>(to_float(scores[first + i]) + to_float(mask[i]));
        }
      });
    });
  });
}

void CpuDevice::compute(const FillMasked& op) {
  const AttentionShape shape = op.shape;
  const std::int64_t square = shape.sequence * shape.sequence;
  assert(op.mask.numel == shape.batch * square && op.mask.dtype == DType::int8);
  assert(op.in.numel == shape.heads * op.mask.numel && op.in.dtype == op.out.dtype);
  const float value = op.with_lowest ? lowest_of(op.out.dtype) : 0;
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<T>(op.in);
    T* const out = elements<T>(op.out);
    for_rows(*this, shape.batch * shape.heads, square, [=](std::int64_t head) {
      const auto* const mask = elements<std::int8_t>(op.mask) + head / shape.heads * square;
      const std::int64_t first = head * square;
      for (std::int64_t i = 0; i < square; ++i) {
        out[first + i] = mask[i] != 0 ? from_float<T>(value) : in[first + i];
      }
    });
  });
}

}  // namespace dstune::cpu
