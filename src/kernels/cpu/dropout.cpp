#include "core/device/operations/dropout.hpp"

#include <cassert>

#include "core/device/random_bits.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const Dropout& op) {
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  assert(op.mask.numel == op.in.numel && op.probability >= 0 && op.probability < 1);
  const std::uint64_t key = make_key(op.seed);
  const std::uint32_t threshold = drop_threshold(op.probability);
  const auto factor = static_cast<float>(1 / (1 - op.probability));
  auto* const kept = elements<std::uint8_t>(op.mask);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const x = elements<T>(op.in);
    T* const y = elements<T>(op.out);
    for_chunks(*this, op.in.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const bool keep = is_kept(key, static_cast<std::uint64_t>(i), threshold);
        kept[i] = keep ? 1 : 0;
        y[i] = from_float<T>(keep ? to_float(x[i]) * factor : 0.0F);
      }
    });
  });
}

void CpuDevice::compute(const DropoutBackward& op) {
  assert(op.d_out.numel == op.d_in.numel && op.d_out.dtype == op.d_in.dtype);
  assert(op.mask.numel == op.d_out.numel);
  const auto factor = static_cast<float>(1 / (1 - op.probability));
  const auto* const kept = elements<std::uint8_t>(op.mask);
  with_type(op.d_out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const d = elements<T>(op.d_out);
    T* const result = elements<T>(op.d_in);
    for_chunks(*this, op.d_out.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        result[i] = from_float<T>(kept[i] != 0 ? to_float(d[i]) * factor : 0.0F);
      }
    });
  });
}

}  // namespace dstune::cpu
