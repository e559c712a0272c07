// Hugging Face's NewGELUActivation is a chain of elementwise kernels in eager PyTorch, each of
// which reads and writes memory: eight forward and eleven backward. So they are here, with what is
// saved, and what is written anyway, as the memory between them.
#include <cassert>

#include "core/device/operations/activations.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

constexpr float kRootTwoOverPi = 0.797884561F;
constexpr float kCubic = 0.044715F;

struct Cube {
  __device__ void operator()(std::int64_t, float x, float& out) const { out = x * x * x; }
};
struct Square {
  __device__ void operator()(std::int64_t, float x, float& out) const { out = x * x; }
};
struct ByFactor {
  float factor;
  __device__ void operator()(std::int64_t, float x, float& out) const { out = factor * x; }
};
struct PlusOne {
  __device__ void operator()(std::int64_t, float x, float& out) const { out = 1.0F + x; }
};
struct Tanh {
  __device__ void operator()(std::int64_t, float x, float& out) const { out = tanhf(x); }
};
struct Sum {
  __device__ void operator()(std::int64_t, float a, float b, float& out) const { out = a + b; }
};
struct Product {
  __device__ void operator()(std::int64_t, float a, float b, float& out) const { out = a * b; }
};
struct TanhGradient {
  __device__ void operator()(std::int64_t, float d, float tanh, float& out) const {
    out = d * (1.0F - tanh * tanh);
  }
};

/// Kernels of one or two operands, of as many elements.
template <class T>
class Chain {
 public:
  Chain(cudaStream_t stream, std::int64_t count) : stream_(stream), count_(count) {}

  template <class F>
  void run(const F& f, const T* in, T* out) const {
    for_each_element(stream_, count_, f, In<T>{in}, Out<T>{out});
  }
  template <class F>
  void run(const F& f, const T* a, const T* b, T* out) const {
    for_each_element(stream_, count_, f, In<T>{a}, In<T>{b}, Out<T>{out});
  }

 private:
  cudaStream_t stream_;
  std::int64_t count_;
};

// Launches of each.
constexpr int kForward = 8;
constexpr int kBackward = 11;

template <class T>
void forward(const Chain<T>& chain, const GeluNew& op) {
  const T* const x = elements<const T>(op.x);
  T* const tanh = elements<T>(op.saved.tanh);
  T* const half_x = elements<T>(op.saved.half_x);
  T* const one_plus_tanh = elements<T>(op.saved.one_plus_tanh);
  T* const out = elements<T>(op.out);
  chain.run(ByFactor{0.5F}, x, half_x);
  chain.run(Cube{}, x, out);
  chain.run(ByFactor{kCubic}, out, out);
  chain.run(Sum{}, x, out, tanh);
  chain.run(ByFactor{kRootTwoOverPi}, tanh, tanh);
  chain.run(Tanh{}, tanh, tanh);
  chain.run(PlusOne{}, tanh, one_plus_tanh);
  chain.run(Product{}, half_x, one_plus_tanh, out);
}

// The kernels run in the order in which autograd walks back.
template <class T>
void backward(const Chain<T>& chain, const GeluNewBackward& op) {
  const T* const d_out = elements<const T>(op.d_out);
  const T* const x = elements<const T>(op.x);
  T* const d_x = elements<T>(op.d_x);
  T* const d_half_x = elements<T>(op.saved.one_plus_tanh);
  T* const d_inner = elements<T>(op.saved.half_x);
  T* const d_cube = elements<T>(op.saved.tanh);
  chain.run(Product{}, d_out, d_half_x, d_half_x);      // one_plus_tanh is there
  chain.run(Product{}, d_out, d_inner, d_inner);        // half_x is
  chain.run(TanhGradient{}, d_inner, d_cube, d_inner);  // tanh is
  chain.run(ByFactor{kRootTwoOverPi}, d_inner, d_inner);
  chain.run(ByFactor{kCubic}, d_inner, d_cube);
  chain.run(ByFactor{0.5F}, d_half_x, d_x);
  T* const slope = d_half_x;
  chain.run(Square{}, x, slope);
  chain.run(ByFactor{3.0F}, slope, slope);
  chain.run(Product{}, d_cube, slope, slope);
  chain.run(Sum{}, d_x, d_inner, d_x);
  chain.run(Sum{}, d_x, slope, d_x);
}

}  // namespace

void CudaDevice::compute(const GeluNew& op) {
  assert(op.x.numel == op.out.numel && op.saved.tanh.numel == op.x.numel);
  assert(op.x.dtype == op.out.dtype);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    forward(Chain<T>(stream(kForward), op.x.numel), op);
  });
}

void CudaDevice::compute(const GeluNewBackward& op) {
  assert(op.x.numel == op.d_out.numel && op.x.numel == op.d_x.numel);
  assert(op.saved.tanh.numel == op.x.numel);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    backward(Chain<T>(stream(kBackward), op.x.numel), op);
  });
}

}  // namespace dstune::cuda
