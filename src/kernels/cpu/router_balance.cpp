#include "core/device/operations/router_balance.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

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
