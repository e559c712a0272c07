// Rows of a table by token, and the tokens of a decoder.
#include "core/device/operations/embedding.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// target += the rows of d_out, rounded once.
template <class T>
void add_rows(Matrix d_out, const std::int64_t* first, const std::int64_t* last, float* sums,
              T* target) {
  convert(target, sums, d_out.cols);
  for (; first != last; ++first) {
    const T* const d = row<T>(d_out, *first);
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

void CpuDevice::compute(const FillPositions& op) {
  assert(op.out.dtype == DType::int64);
  auto* const out = elements<std::int64_t>(op.out);
  const std::int64_t period = op.period == 0 ? op.out.numel : op.period;
  for (std::int64_t begin = 0; begin < op.out.numel; begin += period) {
    std::iota(out + begin, out + std::min(begin + period, op.out.numel), op.first);
  }
}

void CpuDevice::compute(const Embedding& op) {
  const Matrix table = op.table;
  const Matrix out = op.out;
  const auto* const tokens = elements<std::int64_t>(op.tokens);
  assert(op.tokens.dtype == DType::int64 && op.tokens.numel == out.rows);
  assert(table.cols == out.cols && table.dtype == out.dtype);
  const Bytes size = static_cast<Bytes>(out.cols) * size_of(out.dtype);
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, out.rows, out.cols, [=](std::int64_t i) {
      assert(tokens[i] >= 0 && tokens[i] < table.rows);
      std::memcpy(row<T>(out, i), row<T>(table, tokens[i]), size);
    });
  });
}

void CpuDevice::compute(const EmbeddingBackward& op) {
  const Matrix d_out = op.d_out;
  const Matrix d_table = op.d_table;
  const auto* const tokens = elements<std::int64_t>(op.tokens);
  assert(op.tokens.dtype == DType::int64 && op.tokens.numel == d_out.rows);
  assert(d_table.cols == d_out.cols && d_table.dtype == d_out.dtype);
  float* const sums = scratch(d_out.cols);
  const std::vector<std::int64_t> order = rows_by_token(tokens, d_out.rows);
  const std::int64_t* const end = order.data() + order.size();
  with_type(d_out.dtype, [&]<class T>(std::type_identity<T>) {
    for (const std::int64_t* first = order.data(); first != end;) {
      const std::int64_t token = tokens[*first];
      const auto* const last =
          std::find_if(first, end, [=](std::int64_t i) { return tokens[i] != token; });
      add_rows(d_out, first, last, sums, row<T>(d_table, token));
      first = last;
    }
  });
}

void CpuDevice::compute(const ShiftTokens& op) {
  assert(op.labels.numel == op.out.numel && op.out.numel % op.sequence == 0);
  const auto* const labels = elements<std::int64_t>(op.labels);
  auto* const out = elements<std::int64_t>(op.out);
  for_chunks(*this, op.out.numel, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = i % op.sequence == 0 ? op.start : labels[i - 1];
    }
  });
}

}  // namespace dstune::cpu
