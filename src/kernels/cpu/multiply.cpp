#include <cassert>

#include "core/device/operations/activate.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const Multiply& op) {
  assert(op.a.numel == op.b.numel && op.a.numel == op.out.numel);
  assert(op.a.dtype == op.b.dtype && op.a.dtype == op.out.dtype);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const a = elements<T>(op.a);
    const T* const b = elements<T>(op.b);
    T* const out = elements<T>(op.out);
    for_chunks(*this, op.out.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        out[i] = from_float<T>(to_float(a[i]) * to_float(b[i]));
      }
    });
  });
}

}  // namespace dstune::cpu
