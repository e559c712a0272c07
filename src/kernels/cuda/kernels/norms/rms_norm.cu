// Hugging Face's RMSNorm is a chain of kernels in eager PyTorch, each of which reads and writes
// memory: six to eight forward, eleven to sixteen backward. So they are here, with what is saved,
// what is written anyway and the operation's scratch as the memory between them.
#include <cassert>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/norms.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/sums.cuh"

namespace dstune::cuda {

namespace {

struct Assign {
  __device__ void operator()(std::int64_t, float x, float& out) const { out = x; }
};
struct Square {
  __device__ void operator()(std::int64_t, float x, float& out) const { out = x * x; }
};
struct Cube {
  __device__ void operator()(std::int64_t, float x, float& out) const { out = x * x * x; }
};
struct PlusTerm {
  float term;
  __device__ void operator()(std::int64_t, float& x) const { x += term; }
};
struct Times {
  float factor;
  __device__ void operator()(std::int64_t, float& x) const { x *= factor; }
};
struct Rsqrt {
  __device__ void operator()(std::int64_t, float& x) const { x = 1.0F / sqrtf(x); }
};
struct Product {
  __device__ void operator()(std::int64_t, float a, float b, float& out) const { out = a * b; }
};
struct AddTo {
  __device__ void operator()(std::int64_t, float& x, float y) const { x += y; }
};
/// x times the number of its row.
struct TimesRow {
  const float* factors;
  Divisor cols;
  __device__ void operator()(std::int64_t i, float x, float& out) const {
    out = x * factors[i / cols];
  }
};
/// A fraction of the row's number.
struct RowNumber {
  const float* numbers;
  float factor;
  Divisor cols;
  __device__ void operator()(std::int64_t i, float& out) const { out = factor * numbers[i / cols]; }
};
/// x times offset + weight of its column.
template <class T>
struct TimesWeight {
  const T* weight;
  float offset;
  Divisor cols;
  __device__ void operator()(std::int64_t i, float x, float& out) const {
    out = x * (offset + to_float(weight[i - i / cols * *cols]));
  }
};

// Launches of each, at most.
constexpr int kForward = 8;
constexpr int kBackward = 18;

/// Kernels over all elements of the operation's matrices.
struct Chain {
  cudaStream_t stream;
  std::int64_t count;

  template <class F, class... Operands>
  void run(const F& f, const Operands&... operands) const {
    for_each_element(stream, count, f, operands...);
  }
  /// With a number of each row or column, as PyTorch's broadcasts.
  template <class F, class... Operands>
  void broadcast(const F& f, const Operands&... operands) const {
    for_single_elements(stream, count, f, operands...);
  }
};

[[maybe_unused]] bool is_dense(const Matrix& matrix) { return matrix.stride == matrix.cols; }

/// @tparam N  what the weight multiplies
template <class T, class N>
void forward(cudaStream_t stream, void* scratch, const RmsNorm& op) {
  const Chain chain{stream, op.x.numel()};
  const Chain of_rows{stream, op.x.rows};
  const std::int64_t cols = op.x.cols;
  auto* const copy = elements<float>(op.saved.copy);
  auto* const rrms = elements<float>(op.saved.rrms);
  auto* const normalised = elements<N>(op.saved.normalised);
  T* const out = elements<T>(op.out);
  constexpr bool kIsFp32 = std::is_same_v<T, float>;
  auto* const wide = kIsFp32 ? elements<float>(op.out) : elements<float>(op.scratch);
  if constexpr (!kIsFp32) chain.run(Assign{}, In<T>{elements<T>(op.x)}, Out<float>{copy});
  chain.run(Square{}, In<float>{copy}, Out<float>{wide});
  queue_row_sums(stream, scratch, {wide, op.x.rows, cols, DType::fp32, cols},
                 1.0F / static_cast<float>(cols), rrms);
  of_rows.run(PlusTerm{static_cast<float>(op.epsilon)}, InOut<float>{rrms});
  of_rows.run(Rsqrt{}, InOut<float>{rrms});
  const TimesWeight<T> times_weight{elements<const T>(op.weight), static_cast<float>(op.offset),
                                    Divisor(cols)};
  if constexpr (std::is_same_v<N, float>) {
    chain.broadcast(TimesRow{rrms, Divisor(cols)}, In<float>{copy}, Out<float>{normalised});
    chain.broadcast(times_weight, In<float>{normalised}, Out<float>{wide});
    if constexpr (!kIsFp32) chain.run(Assign{}, In<float>{wide}, Out<T>{out});
  } else {
    chain.broadcast(TimesRow{rrms, Divisor(cols)}, In<float>{copy}, Out<float>{wide});
    chain.run(Assign{}, In<float>{wide}, Out<N>{normalised});
    chain.broadcast(times_weight, In<N>{normalised}, Out<T>{out});
  }
}

/// fp32 (M, n) that backward works on.
struct Wide {
  float* gradient;  // by the copy, as it comes back
  float* other;     // and a second one
  float* of_rows;   // (M)
};

template <class T>
Wide wide_of(const RmsNormBackward& op) {
  auto* const scratch = elements<float>(op.scratch);
  const std::int64_t count = op.d_out.numel();
  if constexpr (std::is_same_v<T, float>) {
    return {elements<float>(op.d_x), elements<float>(op.saved.normalised), scratch};
  } else {
    return {scratch, scratch + count, scratch + 2 * count};
  }
}

/// Goes from the gradient by `normalised`, which is there, to that by the copy: through the product
/// with rrms, and through rrms, the mean and the square.
void through_the_mean(const Chain& chain, void* scratch, const RmsNormBackward& op,
                      const Wide& wide) {
  const std::int64_t cols = op.d_out.cols;
  const Chain rows{chain.stream, op.d_out.rows};
  auto* const copy = elements<float>(op.saved.copy);
  auto* const rrms = elements<float>(op.saved.rrms);
  const InOut<float> gradient{wide.gradient};
  chain.run(Product{}, In<float>{wide.gradient}, In<float>{copy}, Out<float>{wide.other});
  queue_row_sums(chain.stream, scratch, {wide.other, op.d_out.rows, cols, DType::fp32, cols}, 1.0F,
                 wide.of_rows);
  chain.broadcast(TimesRow{rrms, Divisor(cols)}, In<float>{wide.gradient},
                  Out<float>{wide.gradient});
  rows.run(Times{-0.5F}, InOut<float>{wide.of_rows});
  rows.run(Cube{}, In<float>{rrms}, Out<float>{rrms});
  rows.run(Product{}, In<float>{wide.of_rows}, In<float>{rrms}, Out<float>{wide.of_rows});
  chain.broadcast(RowNumber{wide.of_rows, 1.0F / static_cast<float>(cols), Divisor(cols)},
                  Out<float>{wide.other});
  chain.run(Assign{}, In<float>{copy}, Out<float>{copy});  // pow(x, 1), as PowBackward does
  chain.run(Times{2.0F}, InOut<float>{copy});
  chain.run(Product{}, In<float>{copy}, In<float>{wide.other}, Out<float>{copy});
  chain.run(AddTo{}, gradient, In<float>{copy});
}

}  // namespace

void CudaDevice::compute(const RmsNorm& op) {
  assert(op.x.rows == op.out.rows && op.x.cols == op.out.cols && op.weight.numel == op.x.cols);
  assert(is_dense(op.x) && is_dense(op.out) && is_dense(op.saved.copy));
  assert(is_dense(op.saved.normalised) && op.saved.rrms.numel == op.x.rows);
  assert(op.x.dtype == op.out.dtype && op.weight.dtype == op.x.dtype);
  assert(op.x.dtype != DType::fp32 || op.saved.copy.data == op.x.data);
  assert(op.scratch.numel >= rms_norm_scratch(op.x.dtype, op.x.numel()));
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    if (op.saved.normalised.dtype == op.x.dtype)
      return forward<T, T>(stream(kForward), scratch<void>(), op);
    assert(op.saved.normalised.dtype == DType::fp32);
    forward<T, float>(stream(kForward), scratch<void>(), op);
  });
}

// The kernels run in the order in which autograd walks back.
void CudaDevice::compute(const RmsNormBackward& op) {
  const Matrix normalised = op.saved.normalised;
  assert(op.d_out.numel() == op.d_x.numel() && op.weight.numel == op.d_out.cols);
  assert(is_dense(op.d_out) && is_dense(op.d_x) && is_dense(op.saved.copy));
  const bool trains = op.d_weight.numel > 0;
  assert(!trains || op.d_weight.numel == op.weight.numel);
  assert(!trains || op.d_weight.dtype == op.weight.dtype);
  assert(op.scratch.numel >= rms_norm_backward_scratch(op.d_out.dtype, op.d_out.numel()));
  with_type(op.d_out.dtype, [&]<class T>(std::type_identity<T>) {
    const Chain chain{stream(kBackward), op.d_out.numel()};
    const Wide wide = wide_of<T>(op);
    const In<T> d_out{elements<T>(op.d_out)};
    const TimesWeight<T> times_weight{elements<const T>(op.weight), static_cast<float>(op.offset),
                                      Divisor(op.d_out.cols)};
    if (normalised.dtype == op.d_out.dtype) {
      T* const xhat = elements<T>(normalised);
      T* const d_x = elements<T>(op.d_x);
      if (trains) {
        chain.run(Product{}, d_out, In<T>{xhat}, Out<T>{xhat});
        compute(BiasGradient{normalised, op.d_weight});
      }
      chain.broadcast(times_weight, d_out, Out<T>{d_x});
      if constexpr (!std::is_same_v<T, float>) {
        chain.run(Assign{}, In<T>{d_x}, Out<float>{wide.gradient});
      }
    } else {
      auto* const xhat = elements<float>(normalised);
      const Tensor d_weight{wide.other, op.weight.numel, DType::fp32};
      chain.run(Assign{}, d_out, Out<float>{wide.gradient});
      if (trains) {
        chain.run(Product{}, In<float>{wide.gradient}, In<float>{xhat}, Out<float>{xhat});
        compute(BiasGradient{normalised, d_weight});
        compute(Cast{d_weight, op.d_weight});
      }
      chain.broadcast(times_weight, In<float>{wide.gradient}, Out<float>{wide.gradient});
    }
    through_the_mean(chain, scratch<void>(), op, wide);
    if constexpr (!std::is_same_v<T, float>) {
      chain.run(Assign{}, In<float>{wide.gradient}, Out<T>{elements<T>(op.d_x)});
    }
  });
}

}  // namespace dstune::cuda
