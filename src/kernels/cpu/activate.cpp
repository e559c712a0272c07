// Activation functions, by themselves and of gates. gelu_new(x) = x/2 (1 + tanh(sqrt(2/pi) (x +
// 0.044715 x^3))) is Hugging Face's NewGELUActivation.
#include <cassert>

#include "core/device/operations/activations.hpp"
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

void CpuDevice::calculate(const Activate& op) {
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

void CpuDevice::calculate(const ActivateBackward& op) {
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

void CpuDevice::calculate(const Glu& op) {
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

void CpuDevice::calculate(const GluBackward& op) {
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

namespace {

constexpr float kRootTwoOverPi = 0.797884561F;
constexpr float kCubic = 0.044715F;

}  // namespace

void CpuDevice::calculate(const GeluNew& op) {
  assert(op.x.numel == op.out.numel && op.saved.tanh.numel == op.x.numel);
  assert(op.x.dtype == op.out.dtype);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<T>(op.x);
    T* const tanh = elements<T>(op.saved.tanh);
    T* const half_x = elements<T>(op.saved.half_x);
    T* const one_plus_tanh = elements<T>(op.saved.one_plus_tanh);
    T* const y = elements<T>(op.out);
    for_chunks(*this, op.x.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const float value = to_float(in[i]);
        const float t = fast_tanh(kRootTwoOverPi * (value + kCubic * value * value * value));
        tanh[i] = from_float<T>(t);
        half_x[i] = from_float<T>(0.5F * value);
        one_plus_tanh[i] = from_float<T>(1.0F + t);
        y[i] = from_float<T>(0.5F * value * (1.0F + t));
      }
    });
  });
}

// x/2 and 1 + tanh are recomputed: cheaper than reading what PyTorch would read.
void CpuDevice::calculate(const GeluNewBackward& op) {
  assert(op.x.numel == op.d_out.numel && op.x.numel == op.d_x.numel);
  assert(op.saved.tanh.numel == op.x.numel);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const d = elements<T>(op.d_out);
    const T* const in = elements<T>(op.x);
    const T* const tanh = elements<T>(op.saved.tanh);
    T* const result = elements<T>(op.d_x);
    for_chunks(*this, op.x.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const float value = to_float(in[i]);
        const float t = to_float(tanh[i]);
        const float inner = kRootTwoOverPi * (1.0F + 3.0F * kCubic * value * value);
        const float slope = 0.5F * (1.0F + t) + 0.5F * value * (1.0F - t * t) * inner;
        result[i] = from_float<T>(to_float(d[i]) * slope);
      }
    });
  });
}

}  // namespace dstune::cpu
