#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/random.hpp"

namespace dstune::cpu {

void CpuDevice::dropout(Tensor in, double probability, std::uint64_t seed, void* mask, Tensor out) {
  assert(in.numel == out.numel && in.dtype == out.dtype && probability >= 0 && probability < 1);
  const std::uint64_t key = make_key(seed);
  const std::uint32_t threshold = drop_threshold(probability);
  const auto factor = static_cast<float>(1 / (1 - probability));
  auto* const kept = static_cast<std::uint8_t*>(mask);
  with_type(in.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const x = elements<T>(in);
    T* const y = elements<T>(out);
    for_chunks(*this, in.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const bool keep = is_kept(key, static_cast<std::uint64_t>(i), threshold);
        kept[i] = keep ? 1 : 0;
        y[i] = from_float<T>(keep ? to_float(x[i]) * factor : 0.0F);
      }
    });
  });
}

void CpuDevice::dropout_backward(Tensor d_out, double probability, const void* mask, Tensor d_in) {
  assert(d_out.numel == d_in.numel && d_out.dtype == d_in.dtype);
  const auto factor = static_cast<float>(1 / (1 - probability));
  const auto* const kept = static_cast<const std::uint8_t*>(mask);
  with_type(d_out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const d = elements<T>(d_out);
    T* const result = elements<T>(d_in);
    for_chunks(*this, d_out.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        result[i] = from_float<T>(kept[i] != 0 ? to_float(d[i]) * factor : 0.0F);
      }
    });
  });
}

}  // namespace dstune::cpu
