// Which experts tokens go to, and the loss that balances them.
#include "core/device/operations/routing.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

std::vector<float> popularities(const ExpertDraw& draw, std::int64_t experts) {
  std::vector<float> logs(static_cast<std::size_t>(experts));
  for (std::size_t e = 0; e < logs.size(); ++e) {
    logs[e] = log_popularity(draw, static_cast<std::int64_t>(e));
  }
  return logs;
}

/// What decides for each column: the scores, or the lot.
void fill_wishes(const TopK& op, const std::vector<float>& popularity, std::int64_t i,
                 float* wishes) {
  if (!op.draw) {
    std::copy_n(row<float>(op.scores, i), op.scores.cols, wishes);
    return;
  }
  for (std::int64_t e = 0; e < op.scores.cols; ++e) {
    const float number = drawn_number(*op.draw, i * op.scores.cols + e);
    wishes[e] = popularity[static_cast<std::size_t>(e)] - std::log(-std::log(number));
  }
}

}  // namespace

void CpuDevice::compute(const TopK& op) {
  assert(op.scores.rows == op.values.rows && op.values.cols <= op.scores.cols);
  assert(op.columns.dtype == DType::int64 && op.columns.numel == op.values.numel());
  const std::int64_t experts = op.scores.cols;
  const std::int64_t chosen = op.values.cols;
  const auto popularity = op.draw ? popularities(*op.draw, experts) : std::vector<float>();
  std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
  float* const wishes = scratch(experts);
  auto* const columns = elements<std::int64_t>(op.columns);
  for_rows(*this, op.scores.rows, experts, [&, wishes](std::int64_t i) {
    fill_wishes(op, popularity, i, wishes);
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::partial_sort(order.begin(), order.begin() + chosen, order.end(),
                      [=](std::int64_t x, std::int64_t y) {
                        return wishes[x] != wishes[y] ? wishes[x] > wishes[y] : x < y;
                      });
    for (std::int64_t j = 0; j < chosen; ++j) {
      const std::int64_t column = order[static_cast<std::size_t>(j)];
      columns[i * chosen + j] = column;
      row<float>(op.values, i)[j] = row<float>(op.scores, i)[column];
    }
  });
}

void CpuDevice::compute(const TopKBackward& op) {
  assert(op.columns.numel == op.d_values.numel() && op.d_values.rows == op.d_scores.rows);
  const auto* const columns = elements<std::int64_t>(op.columns);
  for_rows(*this, op.d_scores.rows, op.d_scores.cols, [&op, columns](std::int64_t i) {
    float* const d = row<float>(op.d_scores, i);
    std::fill_n(d, op.d_scores.cols, 0.0F);
    for (std::int64_t j = 0; j < op.d_values.cols; ++j) {
      d[columns[i * op.d_values.cols + j]] = row<float>(op.d_values, i)[j];
    }
  });
}

void CpuDevice::compute(const DivideBySum& op) {
  assert(op.sums.numel == op.in.rows && op.in.rows == op.out.rows && op.in.cols == op.out.cols);
  for_rows(*this, op.in.rows, op.in.cols, [&op](std::int64_t i) {
    const float* const in = row<float>(op.in, i);
    const float sum = std::accumulate(in, in + op.in.cols, 0.0F);
    elements<float>(op.sums)[i] = sum;
    std::transform(in, in + op.in.cols, row<float>(op.out, i), [=](float x) { return x / sum; });
  });
}

void CpuDevice::compute(const DivideBySumBackward& op) {
  assert(op.sums.numel == op.in.rows && op.in.rows == op.d_in.rows);
  for_rows(*this, op.in.rows, op.in.cols, [&op](std::int64_t i) {
    const float* const in = row<float>(op.in, i);
    const float* const d = row<float>(op.d_out, i);
    const float sum = elements<float>(op.sums)[i];
    const float common = std::inner_product(in, in + op.in.cols, d, 0.0F) / (sum * sum);
    std::transform(d, d + op.in.cols, row<float>(op.d_in, i),
                   [=](float x) { return x / sum - common; });
  });
}

void CpuDevice::compute(const SortByExpert& op) {
  const std::int64_t pairs = op.experts.numel;
  assert(op.order.numel == pairs && op.tokens.numel == pairs && op.places.numel == pairs);
  assert(op.ends.size() == static_cast<Bytes>(op.groups) * sizeof(std::int32_t));
  const auto* const experts = elements<std::int64_t>(op.experts);
  auto* const ends = elements<std::int32_t>(op.ends);
  std::fill_n(ends, op.groups, 0);
  for (std::int64_t i = 0; i < pairs; ++i) ++ends[experts[i]];
  std::partial_sum(ends, ends + op.groups, ends);
  auto* const order = elements<std::int64_t>(op.order);
  auto* const places = elements<std::int64_t>(op.places);
  std::vector<std::int64_t> next(static_cast<std::size_t>(op.groups), 0);
  std::copy_n(ends, op.groups - 1, next.begin() + 1);
  for (std::int64_t i = 0; i < pairs; ++i) {
    places[i] = next[static_cast<std::size_t>(experts[i])]++;
    order[places[i]] = i;
  }
  std::transform(order, order + pairs, elements<std::int64_t>(op.tokens),
                 [&](std::int64_t pair) { return pair / op.chosen; });
}

namespace {

double square(std::int64_t x) { return static_cast<double>(x) * static_cast<double>(x); }

}  // namespace

void CpuDevice::compute(const AddRouting& op) {
  assert(op.counts.numel == op.probs.cols && op.sums.numel == op.probs.cols);
  const auto* const experts = elements<std::int64_t>(op.experts);
  for (std::int64_t i = 0; i < op.experts.numel; ++i) elements<float>(op.counts)[experts[i]] += 1;
  auto* const sums = elements<float>(op.sums);
  with_type(op.probs.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, op.probs.rows, op.probs.cols, [=](std::int64_t i) {
      const T* const probs = row<T>(op.probs, i);
      for (std::int64_t e = 0; e < op.probs.cols; ++e) sums[e] += to_float(probs[e]);
    });
  });
}

void CpuDevice::compute(const BalanceLoss& op) {
  const auto* const counts = elements<float>(op.counts);
  const double sum =
      std::inner_product(counts, counts + op.counts.numel, elements<float>(op.sums), 0.0);
  *elements<float>(op.loss) +=
      static_cast<float>(op.factor * static_cast<double>(op.counts.numel) * sum / square(op.rows));
}

void CpuDevice::compute(const BalanceLossBackward& op) {
  assert(op.d_probs.cols == op.counts.numel);
  const double factor = op.factor * static_cast<double>(op.counts.numel) / square(op.rows);
  with_type(op.d_probs.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, op.d_probs.rows, op.d_probs.cols, [=](std::int64_t i) {
      T* const d = row<T>(op.d_probs, i);
      const auto* const counts = elements<float>(op.counts);
      for (std::int64_t e = 0; e < op.d_probs.cols; ++e) {
        d[e] = from_float<T>(static_cast<float>(factor * static_cast<double>(counts[e])));
      }
    });
  });
}

}  // namespace dstune::cpu
