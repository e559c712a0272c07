#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/device/operations/losses.hpp"
#include "kernels/activations.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

namespace {

/// f(const float* block, offset, count) for the blocks of x[0 .. count).
template <class T, class F>
void for_blocks(const T* x, std::int64_t count, F f) {
  for (std::int64_t begin = 0; begin < count; begin += kBlockElements) {
    const std::int64_t part = std::min(kBlockElements, count - begin);
    std::array<float, kBlockElements> values;  // NOLINT(*-member-init): written by as_floats()
    f(as_floats(x + begin, part, values.data()), begin, part);
  }
}

/// The sum of exponentials of some values, relative to the largest.
struct ExpSum {
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0;

  void add(const float* x, std::int64_t count) {
    float now = largest;
#pragma omp simd reduction(max : now)
    for (std::int64_t j = 0; j < count; ++j) now = x[j] > now ? x[j] : now;
    float added = 0;
#pragma omp simd reduction(+ : added)
    for (std::int64_t j = 0; j < count; ++j) added += fast_exp(x[j] - now);
    sum = (sum == 0 ? 0 : sum * std::exp(largest - now)) + added;
    largest = now;
  }

  /// Adds the capped values of at most kBlockElements.
  template <class Cap>
  void add_capped(Cap cap, const float* x, std::int64_t count) {
    if constexpr (std::is_same_v<Cap, NoCap>) {
      add(x, count);
    } else {
      std::array<float, kBlockElements> values;  // NOLINT(*-member-init): written below
      float* const to = values.data();
#pragma omp simd
      for (std::int64_t j = 0; j < count; ++j) to[j] = cap.value(x[j]);
      add(to, count);
    }
  }

  float log_sum() const { return largest + std::log(sum); }
};

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

namespace {

/// One row of a tile whose label, if it is there, is in `label`.
struct FoldedRow {
  float& largest;
  float& sum;
  float& label_logit;
  std::int64_t label;

  template <class T, class Cap>
  void add(const T* x, std::int64_t cols, Cap cap) const {
    ExpSum all{largest, sum};
    for_blocks(x, cols, [&](const float* values, std::int64_t, std::int64_t count) {
      all.add_capped(cap, values, count);
    });
    largest = all.largest;
    sum = all.sum;
    if (label >= 0 && label < cols) label_logit = cap.value(to_float(x[label]));
  }
};

/// Replaces a row by its gradient.
template <class T, class Cap>
void replace_by_gradient(T* x, std::int64_t cols, std::int64_t label, float log_sum, float factor,
                         Cap cap) {
  transform_blocks(x, 0, cols, [=](float* values, std::int64_t offset, std::int64_t count) {
    const bool has_label = label >= offset && label < offset + count;
    const float own = has_label ? cap.value(values[label - offset]) : 0;
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) {
      const float value = cap.value(values[j]);
      values[j] = factor * fast_exp(value - log_sum) * cap.slope(value);
    }
    if (has_label) values[label - offset] -= factor * cap.slope(own);
  });
}

}  // namespace

void CpuDevice::compute(const FoldLogits& op) {
  const Matrix tile = op.tile;
  const Matrix statistics = op.statistics;
  const std::int64_t first = op.first;
  assert(statistics.dtype == DType::fp32 && statistics.rows == kRowStatistics);
  assert(statistics.cols == tile.rows && op.labels.numel == tile.rows);
  const auto* const labels = elements<std::int64_t>(op.labels);
  with_type(tile.dtype, [&]<class T>(std::type_identity<T>) {
    with_cap<VectorMath>(op.softcap, [&](auto cap) {
      for_rows(*this, tile.rows, tile.cols, [=](std::int64_t i) {
        const FoldedRow folded{row<float>(statistics, kLargest)[i],
                               row<float>(statistics, kExpSum)[i],
                               row<float>(statistics, kLabelLogit)[i], labels[i] - first};
        folded.add(row<T>(tile, i), tile.cols, cap);
      });
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
    with_cap<VectorMath>(op.softcap, [&](auto cap) {
      for_rows(*this, tile.rows, tile.cols, [=](std::int64_t i) {
        replace_by_gradient(row<T>(tile, i), tile.cols, labels[i] - first, log_sums[i], factor,
                            cap);
      });
    });
  });
}

}  // namespace dstune::cpu
