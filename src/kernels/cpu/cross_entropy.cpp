#include "core/device/operations/cross_entropy.hpp"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/log_sum_exp.hpp"

namespace dstune::cpu {

namespace {

/// @returns the row's loss
template <class T>
float replace_by_gradient(T* x, std::int64_t cols, std::int64_t label) {
  ExpSum sum;
  for_blocks(x, cols, [&](const float* values, std::int64_t, std::int64_t count) {
    sum.add(values, count);
  });
  const float log_sum = sum.log_sum();
  const float loss = log_sum - to_float(x[label]);
  transform_blocks(x, 0, cols, [=](float* values, std::int64_t offset, std::int64_t count) {
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) values[j] = fast_exp(values[j] - log_sum);
    if (label >= offset && label < offset + count) values[label - offset] -= 1;
  });
  return loss;
}

}  // namespace

void CpuDevice::compute(const CrossEntropy& op) {
  const Matrix logits = op.logits;
  assert(op.labels.numel == logits.rows && op.labels.dtype == DType::int64);
  assert(op.losses.numel == logits.rows && op.losses.dtype == DType::fp32);
  const auto* const labels = elements<std::int64_t>(op.labels);
  auto* const losses = elements<float>(op.losses);
  with_type(logits.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, logits.rows, logits.cols, [=](std::int64_t i) {
      T* const x = row<T>(logits, i);
      assert(labels[i] < logits.cols);
      if (labels[i] >= 0) {
        losses[i] = replace_by_gradient(x, logits.cols, labels[i]);
      } else {
        losses[i] = 0;
        std::fill(x, x + logits.cols, from_float<T>(0));
      }
    });
  });
}

}  // namespace dstune::cpu
