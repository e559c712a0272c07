#include "core/device/operations/cross_entropy.hpp"

#include <algorithm>
#include <cassert>

#include "kernels/activations.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/log_sum_exp.hpp"

namespace dstune::cpu {

namespace {

/// @returns the row's loss
template <class T, class Cap>
float replace_by_gradient(T* x, std::int64_t cols, std::int64_t label, Cap cap) {
  ExpSum sum;
  for_blocks(x, cols, [&](const float* values, std::int64_t, std::int64_t count) {
    sum.add_capped(cap, values, count);
  });
  const float log_sum = sum.log_sum();
  const float own = cap.value(to_float(x[label]));
  transform_blocks(x, 0, cols, [=](float* values, std::int64_t offset, std::int64_t count) {
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) {
      const float value = cap.value(values[j]);
      values[j] = fast_exp(value - log_sum) * cap.slope(value);
    }
    if (label >= offset && label < offset + count) values[label - offset] -= cap.slope(own);
  });
  return log_sum - own;
}

}  // namespace

void CpuDevice::compute(const CrossEntropy& op) {
  const Matrix logits = op.logits;
  assert(op.labels.numel == logits.rows && op.labels.dtype == DType::int64);
  assert(op.losses.numel == logits.rows && op.losses.dtype == DType::fp32);
  const auto* const labels = elements<std::int64_t>(op.labels);
  auto* const losses = elements<float>(op.losses);
  with_type(logits.dtype, [&]<class T>(std::type_identity<T>) {
    with_cap<VectorMath>(op.softcap, [&](auto cap) {
      for_rows(*this, logits.rows, logits.cols, [=](std::int64_t i) {
        T* const x = row<T>(logits, i);
        assert(labels[i] < logits.cols);
        if (labels[i] >= 0) {
          losses[i] = replace_by_gradient(x, logits.cols, labels[i], cap);
        } else {
          losses[i] = 0;
          std::fill(x, x + logits.cols, from_float<T>(0));
        }
      });
    });
  });
}

}  // namespace dstune::cpu
