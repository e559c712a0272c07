#include "core/train/layers/linear.hpp"

#include <utility>

#include "core/device/operations/bias.hpp"
#include "core/device/operations/gemm.hpp"

namespace dstune::layers {

namespace {

// Conv1D is torch.addmm, which adds a bias of one dimension in the product's epilogue
// (CUBLASLT_EPILOGUE_BIAS) unless a side is 1: isInputCompliesAddmmCudaLt of PyTorch's Blas.cpp.
bool adds_bias_on_the_way_out(const Gemm& product) {
  const Matrix& x = product.a;
  const Matrix& w = product.b;
  return x.rows > 1 && x.cols > 1 && w.cols > 1;
}

void multiply_and_add(Device& device, Gemm product, const Tensor& bias) {
  if (adds_bias_on_the_way_out(product)) {
    product.bias = bias;
    device.run(product);
  } else {
    device.run(product);
    device.run(AddBias{product.c, bias});
  }
}

}  // namespace

Linear::Linear(const ModelNames& names, const std::string& name, std::int64_t inputs,
               std::int64_t outputs)
    : module(names.module(name)),
      weight(names.tensor(name + ".weight")),
      bias(names.tensor(name + ".bias")),
      in(inputs),
      out(outputs) {}

Buffer Linear::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x) const {
  hooks.fetch(module);
  Buffer y = work.activation(out);
  const Matrix w = as_matrix(hooks.parameter(weight), in, out);
  multiply_and_add(*work.device, {.a = work.matrix(x, in), .b = w, .c = work.matrix(y, out)},
                   hooks.parameter(bias));
  hooks.release(module);
  return y;
}

Buffer Linear::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                        const Buffer& x) const {
  Device& device = *work.device;
  hooks.fetch(module);
  const Matrix w = as_matrix(hooks.parameter(weight), in, out);
  const Matrix d_y_matrix = work.matrix(d_y, out);
  Buffer d_bias = work.gradient(out);
  device.run(BiasGradient{d_y_matrix, d_bias.tensor(work.dtype)});
  hooks.gradient_ready(bias, std::move(d_bias));

  Buffer d_x = work.activation(in);
  device.run(
      Gemm{.transpose_b = Transpose::yes, .a = d_y_matrix, .b = w, .c = work.matrix(d_x, in)});
  Buffer d_weight = work.gradient(in * out);
  device.run(Gemm{.transpose_a = Transpose::yes,
                  .a = work.matrix(x, in),
                  .b = d_y_matrix,
                  .c = as_matrix(d_weight.tensor(work.dtype), in, out)});
  hooks.gradient_ready(weight, std::move(d_weight));
  hooks.release(module);
  return d_x;
}

}  // namespace dstune::layers
