#include <algorithm>
#include <cassert>

#include "core/device/operations/rows.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// The elements [first, last) of a kernel's width that lie within the sequence of row `at`.
struct Taps {
  std::int64_t first;
  std::int64_t last;
};

/// The taps of the rows at + offset, at + offset + 1, ... that are in the sequence.
Taps taps_at(std::int64_t at, std::int64_t sequence, std::int64_t width, std::int64_t offset) {
  const std::int64_t place = at % sequence + offset;
  return {std::max<std::int64_t>(0, -place), std::min(width, sequence - place)};
}

}  // namespace

void CpuDevice::compute(const Unfold& op) {
  const Matrix in = op.in;
  const Matrix out = op.out;
  const std::int64_t width = out.cols / in.cols;
  const std::int64_t sequence = op.sequence;
  assert(in.rows == out.rows && in.dtype == out.dtype && width % 2 == 1);
  assert(out.cols == in.cols * width && in.rows % sequence == 0);
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, out.rows, out.cols, [=](std::int64_t at) {
      T* const to = row<T>(out, at);
      const auto [first, last] = taps_at(at, sequence, width, -(width / 2));
      std::fill_n(to, out.cols, from_float<T>(0));
      for (std::int64_t tap = first; tap < last; ++tap) {
        const T* const from = row<const T>(in, at + tap - width / 2);
        for (std::int64_t c = 0; c < in.cols; ++c) to[c * width + tap] = from[c];
      }
    });
  });
}

void CpuDevice::compute(const Fold& op) {
  const Matrix in = op.in;
  const Matrix out = op.out;
  const std::int64_t width = in.cols / out.cols;
  const std::int64_t sequence = op.sequence;
  assert(in.rows == out.rows && in.dtype == out.dtype && width % 2 == 1);
  assert(in.cols == out.cols * width && in.rows % sequence == 0);
  float* const sums = scratch(out.cols);
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, out.rows, in.cols, [=](std::int64_t at) {
      const auto [first, last] = taps_at(at, sequence, width, -(width / 2));
      std::fill_n(sums, out.cols, 0.0F);
      for (std::int64_t step = first; step < last; ++step) {
        const T* const from = row<const T>(in, at + step - width / 2) + width - 1 - step;
        for (std::int64_t c = 0; c < out.cols; ++c) sums[c] += to_float(from[c * width]);
      }
      convert(sums, row<T>(out, at), out.cols);
    });
  });
}

}  // namespace dstune::cpu
