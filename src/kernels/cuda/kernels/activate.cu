// Activation functions, by themselves and of gates.
#include <cassert>

#include "core/device/operations/activations.hpp"
#include "kernels/activations.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/elements.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

struct Affine {
  float factor;
  float addend;
  __device__ void operator()(std::int64_t, float x, float& out) const { out = factor * x + addend; }
};
template <class F>
struct Forward {
  __device__ void operator()(std::int64_t, float x, float& out) const { out = F::value(x); }
};
template <class F>
struct Backward {
  __device__ void operator()(std::int64_t, float d, float saved, float& d_x) const {
    d_x = F::gradient(d, saved);
  }
};

}  // namespace

void CudaDevice::compute(const Activate& op) {
  assert(op.x.numel == op.out.numel && op.x.dtype == op.out.dtype);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const auto run = [&](const auto& f) {
      for_each_element(stream(), op.x.numel, f, In<T>{elements<const T>(op.x)},
                       Out<T>{elements<T>(op.out)});
    };
    if (op.kind == Activation::affine) {
      return run(Affine{static_cast<float>(op.factor), static_cast<float>(op.addend)});
    }
    with_activation<DeviceMath>(op.kind,
                                [&]<class F>(std::type_identity<F>) { run(Forward<F>{}); });
  });
}

void CudaDevice::compute(const ActivateBackward& op) {
  assert(op.d_out.numel == op.d_x.numel && op.saved.numel == op.d_x.numel);
  assert(op.d_out.dtype == op.d_x.dtype && op.saved.dtype == op.d_x.dtype);
  with_type(op.d_x.dtype, [&]<class T>(std::type_identity<T>) {
    with_activation<DeviceMath>(op.kind, [&]<class F>(std::type_identity<F>) {
      for_each_element(stream(), op.d_x.numel, Backward<F>{}, In<T>{elements<const T>(op.d_out)},
                       In<T>{elements<const T>(op.saved)}, Out<T>{elements<T>(op.d_x)});
    });
  });
}

namespace {

/// One half of a matrix of gates and values, as a dense one would be indexed.
template <class T>
struct Half {
  RowsOf<const T> rows;
  Divisor cols;

  __device__ float operator[](std::int64_t index) const {
    const std::int64_t row = index / cols;
    return to_float(rows[row][index - row * *cols]);
  }
};

template <class T>
Half<T> half_of(const Matrix& gate_up, std::int64_t first) {
  Matrix part = gate_up;
  part.data = static_cast<T*>(gate_up.data) + first;
  return {rows_of<const T>(part), Divisor(gate_up.cols / 2)};
}

template <class F, class T>
struct ActivateHalf {
  Half<T> gate;

  __device__ void operator()(std::int64_t i, float& out) const { out = F::value(gate[i]); }
};

template <class T>
struct TimesHalf {
  Half<T> half;

  __device__ void operator()(std::int64_t i, float x, float& out) const { out = x * half[i]; }
};

struct Times {
  __device__ void operator()(std::int64_t, float a, float b, float& out) const { out = a * b; }
};

template <class F, class T>
struct DifferentiateHalf {
  Half<T> gate;

  __device__ void operator()(std::int64_t i, float& d) const { d = F::gradient(d, gate[i]); }
};

template <class F>
struct DifferentiateResult {
  __device__ void operator()(std::int64_t, float& d, float result) const {
    d = F::gradient(d, result);
  }
};

}  // namespace

void CudaDevice::compute(const Glu& op) {
  const std::int64_t cols = op.gate_up.cols / 2;
  const std::int64_t count = op.product.numel;
  assert(op.activated.numel == count && count == op.gate_up.rows * cols);
  with_type(op.product.dtype, [&]<class T>(std::type_identity<T>) {
    with_activation<DeviceMath>(op.kind, [&]<class F>(std::type_identity<F>) {
      for_single_elements(stream(), count, ActivateHalf<F, T>{half_of<T>(op.gate_up, 0)},
                          Out<T>{elements<T>(op.activated)});
    });
    for_single_elements(stream(), count, TimesHalf<T>{half_of<T>(op.gate_up, cols)},
                        In<T>{elements<const T>(op.activated)}, Out<T>{elements<T>(op.product)});
  });
}

void CudaDevice::compute(const GluBackward& op) {
  const std::int64_t cols = op.gate_up.cols / 2;
  const std::int64_t count = op.d_product.numel;
  assert(op.d_up.numel == count && op.d_gate.numel == count);
  with_type(op.d_product.dtype, [&]<class T>(std::type_identity<T>) {
    const In<T> d_product{elements<const T>(op.d_product)};
    const In<T> activated{elements<const T>(op.activated)};
    for_single_elements(stream(), count, TimesHalf<T>{half_of<T>(op.gate_up, cols)}, d_product,
                        Out<T>{elements<T>(op.d_gate)});
    for_each_element(stream(), count, Times{}, d_product, activated, Out<T>{elements<T>(op.d_up)});
    with_activation<DeviceMath>(op.kind, [&]<class F>(std::type_identity<F>) {
      const InOut<T> d_gate{elements<T>(op.d_gate)};
      if (saves_result(op.kind)) {
        for_each_element(stream(), count, DifferentiateResult<F>{}, d_gate, activated);
      } else {
        for_single_elements(stream(), count, DifferentiateHalf<F, T>{half_of<T>(op.gate_up, 0)},
                            d_gate);
      }
    });
  });
}

}  // namespace dstune::cuda
