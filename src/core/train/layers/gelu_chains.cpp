#include "core/train/layers/gelu_chains.hpp"

#include <utility>

#include "core/device/operations/activate.hpp"
#include "core/device/operations/add.hpp"

namespace dstune::layers {

namespace {

constexpr double kSteepness = 1.702;
constexpr double kRootTwoOverPi = 0.7978845608;
constexpr double kCubic = 0.044715;

// Kernels of one micro-batch, each with a result (M, size) of its own unless it says otherwise.
class Chain {
 public:
  Chain(const Workspace& work, std::int64_t size) : work_(work), size_(size) {}

  Buffer affine(const Buffer& x, double factor, double addend = 0) const {
    Buffer out = work_.activation(size_);
    run_affine(x, out, factor, addend);
    return out;
  }
  /// PyTorch's second tensor lives for this one kernel.
  void affine_in_place(const Buffer& x, double factor, double addend = 0) const {
    run_affine(x, x, factor, addend);
  }
  Buffer product(const Buffer& a, const Buffer& b) const {
    Buffer out = work_.activation(size_);
    work_.device->run(Multiply{.a = tensor(a), .b = tensor(b), .out = tensor(out)});
    return out;
  }
  void activate_in_place(Activation kind, const Buffer& x) const {
    work_.device->run(Activate{.kind = kind, .x = tensor(x), .out = tensor(x)});
  }
  void gradient_in_place(Activation kind, const Buffer& d, const Buffer& saved) const {
    work_.device->run(ActivateBackward{
        .kind = kind, .d_out = tensor(d), .saved = tensor(saved), .d_x = tensor(d)});
  }
  void add(const Buffer& sum, const Buffer& more) const {
    work_.device->run(Add{tensor(sum), tensor(more)});
  }

 private:
  Tensor tensor(const Buffer& buffer) const { return buffer.tensor(work_.dtype); }
  void run_affine(const Buffer& x, const Buffer& out, double factor, double addend) const {
    work_.device->run(Activate{.kind = Activation::affine,
                               .x = tensor(x),
                               .out = tensor(out),
                               .factor = factor,
                               .addend = addend});
  }

  const Workspace& work_;
  std::int64_t size_;
};

}  // namespace

Buffer QuickGelu::forward(const Workspace& work, ModuleHooks& hooks, Buffer x) {
  const Chain chain(work, size);
  return inside(hooks, module, [&] {
    input = std::move(x);
    sigmoid = chain.affine(input, kSteepness);
    chain.activate_in_place(Activation::sigmoid, sigmoid);
    return chain.product(input, sigmoid);
  });
}

Buffer QuickGelu::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y) {
  const Chain chain(work, size);
  return inside(hooks, module, [&] {
    Buffer d_x = chain.product(d_y, sigmoid);
    const Buffer d_sigmoid = chain.product(d_y, input);
    input.reset();
    d_y.reset();
    chain.gradient_in_place(Activation::sigmoid, d_sigmoid, sigmoid);
    sigmoid.reset();
    chain.affine_in_place(d_sigmoid, kSteepness);
    chain.add(d_x, d_sigmoid);
    return d_x;
  });
}

Buffer FastGelu::forward(const Workspace& work, ModuleHooks& hooks, Buffer x) {
  const Chain chain(work, size);
  return inside(hooks, module, [&] {
    input = std::move(x);
    half = chain.affine(input, 0.5);
    root = chain.affine(input, kRootTwoOverPi);
    cubic = chain.affine(input, kCubic);
    one_plus_cube = chain.product(cubic, input);
    chain.affine_in_place(one_plus_cube, 1, 1);
    tanh = chain.product(root, one_plus_cube);
    chain.activate_in_place(Activation::tanh, tanh);
    one_plus_tanh = chain.affine(tanh, 1, 1);
    return chain.product(half, one_plus_tanh);
  });
}

// In the order in which autograd walks back.
Buffer FastGelu::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y) {
  const Chain chain(work, size);
  return inside(hooks, module, [&] {
    Buffer d_half = chain.product(d_y, one_plus_tanh);
    Buffer d_inner = chain.product(d_y, half);
    for (Buffer* used : {&d_y, &one_plus_tanh, &half}) used->reset();
    chain.gradient_in_place(Activation::tanh, d_inner, tanh);
    tanh.reset();
    const Buffer d_root = chain.product(d_inner, one_plus_cube);
    Buffer d_cube = chain.product(d_inner, root);
    for (Buffer* used : {&d_inner, &one_plus_cube, &root}) used->reset();
    const Buffer d_cubic = chain.product(d_cube, input);
    Buffer d_x = chain.product(d_cube, cubic);
    for (Buffer* used : {&d_cube, &input, &cubic}) used->reset();
    chain.affine_in_place(d_cubic, kCubic);
    chain.add(d_x, d_cubic);
    chain.affine_in_place(d_root, kRootTwoOverPi);
    chain.add(d_x, d_root);
    chain.affine_in_place(d_half, 0.5);
    chain.add(d_x, d_half);
    return d_x;
  });
}

}  // namespace dstune::layers
