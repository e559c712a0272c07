#include "core/device/operations/logits_tile.hpp"

#include <cassert>
#include <cmath>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/log_sum_exp.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const FoldLogits& op) {
  const Matrix tile = op.tile;
  const Matrix statistics = op.statistics;
  const std::int64_t first = op.first;
  assert(statistics.dtype == DType::fp32 && statistics.rows == kRowStatistics);
  assert(statistics.cols == tile.rows && op.labels.numel == tile.rows);
  const auto* const labels = elements<std::int64_t>(op.labels);
  with_type(tile.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, tile.rows, tile.cols, [=](std::int64_t i) {
      float& largest = row<float>(statistics, kLargest)[i];
      float& sum = row<float>(statistics, kExpSum)[i];
      const T* const x = row<T>(tile, i);
      ExpSum all{largest, sum};
      for_blocks(x, tile.cols, [&](const float* values, std::int64_t, std::int64_t count) {
        all.add(values, count);
      });
      largest = all.largest;
      sum = all.sum;
      const std::int64_t label = labels[i] - first;
      if (label >= 0 && label < tile.cols) {
        row<float>(statistics, kLabelLogit)[i] = to_float(x[label]);
      }
    });
  });
}

void CpuDevice::compute(const LogSums& op) {
  assert(op.log_sums.numel == op.statistics.cols && op.losses.numel == op.statistics.cols);
  const float* const largest = row<float>(op.statistics, kLargest);
  const float* const sum = row<float>(op.statistics, kExpSum);
  const float* const label_logit = row<float>(op.statistics, kLabelLogit);
  auto* const log_sums = elements<float>(op.log_sums);
  auto* const losses = elements<float>(op.losses);
  for (std::int64_t i = 0; i < op.statistics.cols; ++i) {
    log_sums[i] = largest[i] + std::log(sum[i]);
    losses[i] = log_sums[i] - label_logit[i];
  }
}

void CpuDevice::compute(const LogitsGradient& op) {
  const Matrix tile = op.tile;
  const std::int64_t first = op.first;
  assert(op.labels.numel == tile.rows && op.log_sums.numel == tile.rows);
  const auto* const labels = elements<std::int64_t>(op.labels);
  const auto* const log_sums = elements<float>(op.log_sums);
  const auto factor = static_cast<float>(op.factor);
  with_type(tile.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, tile.rows, tile.cols, [=](std::int64_t i) {
      const float log_sum = log_sums[i];
      const std::int64_t label = labels[i] - first;
      transform_blocks(row<T>(tile, i), 0, tile.cols,
                       [=](float* values, std::int64_t offset, std::int64_t count) {
#pragma omp simd
                         for (std::int64_t j = 0; j < count; ++j) {
                           values[j] = factor * fast_exp(values[j] - log_sum);
                         }
                         if (label >= offset && label < offset + count) {
                           values[label - offset] -= factor;
                         }
                       });
    });
  });
}

}  // namespace dstune::cpu
