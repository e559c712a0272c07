#include "core/device/operations/glu.hpp"

#include <cassert>

#include "kernels/activations.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const Glu& op) {
  const std::int64_t cols = op.gate_up.cols / 2;
  assert(op.activated.numel == op.gate_up.rows * cols && op.product.numel == op.activated.numel);
  with_type(op.product.dtype, [&]<class T>(std::type_identity<T>) {
    with_activation<VectorMath>(op.kind, [&]<class F>(std::type_identity<F>) {
      for_rows(*this, op.gate_up.rows, cols, [&op, cols](std::int64_t i) {
        const T* const gate = row<T>(op.gate_up, i);
        const T* const up = gate + cols;
        T* const activated = elements<T>(op.activated) + i * cols;
        T* const product = elements<T>(op.product) + i * cols;
#pragma omp simd
        for (std::int64_t j = 0; j < cols; ++j) {
          activated[j] = from_float<T>(F::value(to_float(gate[j])));
          product[j] = from_float<T>(to_float(activated[j]) * to_float(up[j]));
        }
      });
    });
  });
}

void CpuDevice::compute(const GluBackward& op) {
  const std::int64_t cols = op.gate_up.cols / 2;
  assert(op.d_product.numel == op.gate_up.rows * cols && op.d_up.numel == op.d_gate.numel);
  const bool reads_result = saves_result(op.kind);
  with_type(op.d_product.dtype, [&]<class T>(std::type_identity<T>) {
    with_activation<VectorMath>(op.kind, [&]<class F>(std::type_identity<F>) {
      for_rows(*this, op.gate_up.rows, cols, [&op, cols, reads_result](std::int64_t i) {
        const T* const gate = row<T>(op.gate_up, i);
        const T* const up = gate + cols;
        const T* const d = elements<T>(op.d_product) + i * cols;
        const T* const activated = elements<T>(op.activated) + i * cols;
        const T* const saved = reads_result ? activated : gate;
        T* const d_up = elements<T>(op.d_up) + i * cols;
        T* const d_gate = elements<T>(op.d_gate) + i * cols;
#pragma omp simd
        for (std::int64_t j = 0; j < cols; ++j) {
          const T d_activated = from_float<T>(to_float(d[j]) * to_float(up[j]));
          d_up[j] = from_float<T>(to_float(d[j]) * to_float(activated[j]));
          d_gate[j] = from_float<T>(F::gradient(to_float(d_activated), to_float(saved[j])));
        }
      });
    });
  });
}

}  // namespace dstune::cpu
