#include "core/device/operations/activate.hpp"

#include <cassert>

#include "kernels/activations.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

namespace {

template <class T, class F>
void map(const CpuDevice& device, const Activate& op, F f) {
  const T* const in = elements<T>(op.x);
  T* const out = elements<T>(op.out);
  for_chunks(device, op.x.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) out[i] = from_float<T>(f(to_float(in[i])));
  });
}

}  // namespace

void CpuDevice::compute(const Activate& op) {
  assert(op.x.numel == op.out.numel && op.x.dtype == op.out.dtype);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    if (op.kind == Activation::affine) {
      const auto factor = static_cast<float>(op.factor);
      const auto addend = static_cast<float>(op.addend);
      return map<T>(*this, op, [=](float x) { return factor * x + addend; });
    }
    with_activation<VectorMath>(op.kind, [&]<class F>(std::type_identity<F>) {
      map<T>(*this, op, [](float x) { return F::value(x); });
    });
  });
}

void CpuDevice::compute(const ActivateBackward& op) {
  assert(op.d_out.numel == op.d_x.numel && op.saved.numel == op.d_x.numel);
  assert(op.d_out.dtype == op.d_x.dtype && op.saved.dtype == op.d_x.dtype);
  with_type(op.d_x.dtype, [&]<class T>(std::type_identity<T>) {
    with_activation<VectorMath>(op.kind, [&]<class F>(std::type_identity<F>) {
      const T* const d = elements<T>(op.d_out);
      const T* const saved = elements<T>(op.saved);
      T* const result = elements<T>(op.d_x);
      for_chunks(*this, op.d_x.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) {
          result[i] = from_float<T>(F::gradient(to_float(d[i]), to_float(saved[i])));
        }
      });
    });
  });
}

}  // namespace dstune::cpu
