#include "core/device/operations/embedding.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <vector>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// target += the sum of `count` rows of d_out, rounded once; row k of them is row_of(k).
template <class T, class RowOf>
void add_rows(Matrix d_out, std::int64_t count, const RowOf& row_of, float* sums, T* target) {
  convert(target, sums, d_out.cols);
  for (std::int64_t k = 0; k < count; ++k) {
    const T* const d = row<T>(d_out, row_of(k));
#pragma omp simd
    for (std::int64_t j = 0; j < d_out.cols; ++j) sums[j] += to_float(d[j]);
  }
  convert(sums, target, d_out.cols);
}

/// Rows sorted by token; rows of one token stay in their order, so the sums are reproducible.
std::vector<std::int64_t> rows_by_token(const std::int64_t* tokens, std::int64_t rows) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t x, std::int64_t y) { return tokens[x] < tokens[y]; });
  return order;
}

}  // namespace

void CpuDevice::compute(const Embedding& op) {
  const Matrix wte = op.wte;
  const Matrix wpe = op.wpe;
  const Matrix out = op.out;
  const std::int64_t sequence = op.sequence;
  const auto* const tokens = elements<std::int64_t>(op.tokens);
  assert(op.tokens.dtype == DType::int64 && op.tokens.numel == out.rows);
  assert(wte.cols == out.cols && wpe.cols == out.cols && sequence <= wpe.rows);
  assert(wte.dtype == out.dtype && wpe.dtype == out.dtype);
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, out.rows, out.cols, [=](std::int64_t i) {
      assert(tokens[i] >= 0 && tokens[i] < wte.rows);
      const T* const token = row<T>(wte, tokens[i]);
      const T* const position = row<T>(wpe, i % sequence);
      T* const y = row<T>(out, i);
#pragma omp simd
      for (std::int64_t j = 0; j < out.cols; ++j) {
        y[j] = from_float<T>(to_float(token[j]) + to_float(position[j]));
      }
    });
  });
}

void CpuDevice::compute(const EmbeddingBackward& op) {
  const Matrix d_out = op.d_out;
  const Matrix d_wte = op.d_wte;
  const Matrix d_wpe = op.d_wpe;
  const std::int64_t sequence = op.sequence;
  const auto* const tokens = elements<std::int64_t>(op.tokens);
  assert(d_out.rows % sequence == 0 && d_wte.cols == d_out.cols && d_wpe.cols == d_out.cols);
  assert(d_wte.dtype == d_out.dtype && d_wpe.dtype == d_out.dtype);
  float* const sums = scratch(d_out.cols);
  const std::vector<std::int64_t> order = rows_by_token(tokens, d_out.rows);
  const std::int64_t batch = d_out.rows / sequence;
  with_type(d_out.dtype, [&]<class T>(std::type_identity<T>) {
    for (auto first = order.begin(); first != order.end();) {
      const std::int64_t token = tokens[*first];
      const auto last =
          std::find_if(first, order.end(), [=](std::int64_t i) { return tokens[i] != token; });
      add_rows(
          d_out, last - first, [&](std::int64_t k) { return *(first + k); }, sums,
          row<T>(d_wte, token));
      first = last;
    }
    for_rows(*this, sequence, batch * d_out.cols, [=](std::int64_t position) {
      add_rows(
          d_out, batch, [&](std::int64_t k) { return k * sequence + position; }, sums,
          row<T>(d_wpe, position));
    });
  });
}

}  // namespace dstune::cpu
