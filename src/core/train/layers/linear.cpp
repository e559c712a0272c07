#include "core/train/layers/linear.hpp"

#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/bias.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/train/layers/lora_adapter.hpp"

namespace dstune::layers {

namespace {

// torch.addmm adds a bias of one dimension in the product's epilogue (CUBLASLT_EPILOGUE_BIAS)
// unless a side is 1: isInputCompliesAddmmCudaLt of PyTorch's Blas.cpp.
bool may_add_on_the_way_out(const Gemm& product) {
  return product.a.rows > 1 && product.a.cols > 1 && product.c.cols > 1;
}

}  // namespace

Linear::Linear(const ModelNames& names, const std::string& name, std::int64_t inputs,
               std::int64_t outputs, WeightOrder weight_order, bool has_bias)
    : module(names.module(name)),
      weight(names.tensor(name + ".weight")),
      bias(has_bias ? std::optional(names.tensor(name + ".bias")) : std::nullopt),
      in(inputs),
      out(outputs),
      order(weight_order) {
  if (names.lora().rank == 0 || !names.find_module(name + ".lora_A.default")) return;
  adapter = std::make_unique<LoraAdapter>(names, name, module, in, out);
  ++module;  // base_layer comes after lora.Linear, which has its name
}

Linear::Linear(std::size_t own_module, std::size_t weight_tensor,
               std::optional<std::size_t> bias_tensor, std::int64_t inputs, std::int64_t outputs,
               WeightOrder weight_order)
    : module(own_module),
      weight(weight_tensor),
      bias(bias_tensor),
      in(inputs),
      out(outputs),
      order(weight_order) {}

Linear::~Linear() = default;
Linear::Linear(Linear&& other) noexcept = default;
Linear& Linear::operator=(Linear&& other) noexcept = default;

bool Linear::keeps_input(const Workspace& work, const ModuleHooks& hooks) const {
  return is_deepspeeds(work) || hooks.is_trainable(weight) || (adapter && adapter->keeps_input());
}

Matrix Linear::weight_matrix(const Tensor& tensor) const {
  return order == WeightOrder::in_out ? as_matrix(tensor, in, out) : as_matrix(tensor, out, in);
}

bool Linear::is_deepspeeds(const Workspace& work) const {
  return order == WeightOrder::out_in && work.linear == LinearLayers::memory_efficient;
}

Buffer Linear::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x) const {
  if (!adapter) return multiply(work, hooks, x);
  return inside(hooks, adapter->module(), [&] {
    Buffer y = multiply(work, hooks, x);
    adapter->forward(work, hooks, x, y);
    return y;
  });
}

Buffer Linear::multiply(const Workspace& work, ModuleHooks& hooks, const Buffer& x) const {
  hooks.fetch(module);
  // Autograd saves before torch's product, and after DeepSpeed's function.
  if (!is_deepspeeds(work)) hooks.all_is_saved(module);
  Buffer y = work.activation(out);
  Gemm product{.transpose_b = order == WeightOrder::in_out ? Transpose::no : Transpose::yes,
               .a = work.matrix(x, in),
               .b = weight_matrix(hooks.parameter(weight)),
               .c = work.matrix(y, out)};
  // DeepSpeed's function is a product, then `output += bias`, where x has three dimensions.
  const bool adds_apart = is_deepspeeds(work) && !takes_matrix;
  const bool on_the_way = bias && may_add_on_the_way_out(product) && !adds_apart;
  if (on_the_way) product.bias = hooks.parameter(*bias);
  work.device->run(product);
  if (bias && !on_the_way) work.device->run(AddBias{product.c, hooks.parameter(*bias)});
  hooks.release(module);
  return y;
}

Buffer Linear::bias_gradient(const Workspace& work, const Buffer& d_y) const {
  Buffer d_bias = work.gradient(out);
  work.device->run(BiasGradient{work.matrix(d_y, out), d_bias.tensor(work.dtype)});
  return d_bias;
}

Buffer Linear::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                        const Buffer& x, Buffer* d_tied) const {
  if (!adapter) return differentiate(work, hooks, d_y, x, d_tied);
  return inside(hooks, adapter->module(), [&] {
    Buffer d_x = adapter->backward(work, hooks, d_y, x);
    const Buffer term = differentiate(work, hooks, d_y, x, d_tied);
    work.device->run(Add{d_x.tensor(work.dtype), term.tensor(work.dtype)});
    return d_x;
  });
}

Buffer Linear::differentiate(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                             const Buffer& x, Buffer* d_tied) const {
  hooks.fetch(module);
  hooks.saved_is_read();
  const bool has_bias_gradient = bias && hooks.is_trainable(*bias);
  const bool bias_is_last = is_deepspeeds(work);
  if (has_bias_gradient && !bias_is_last) hooks.gradient_ready(*bias, bias_gradient(work, d_y));

  Buffer d_x = work.activation(in);
  work.device->run(
      Gemm{.transpose_b = order == WeightOrder::in_out ? Transpose::yes : Transpose::no,
           .a = work.matrix(d_y, out),
           .b = weight_matrix(hooks.parameter(weight)),
           .c = work.matrix(d_x, in)});
  Buffer d_weight;
  if (hooks.is_trainable(weight)) d_weight = weight_gradient(work, d_y, x);
  Buffer d_bias;  // both are there before a hook
  if (has_bias_gradient && bias_is_last) d_bias = bias_gradient(work, d_y);
  if (d_tied != nullptr) {
    *d_tied = std::move(d_weight);
  } else if (d_weight) {
    hooks.gradient_ready(weight, std::move(d_weight));
  }
  if (d_bias) hooks.gradient_ready(*bias, std::move(d_bias));
  hooks.release(module);
  return d_x;
}

Buffer Linear::weight_gradient(const Workspace& work, const Buffer& d_y, const Buffer& x) const {
  Buffer d_weight = work.gradient(in * out);
  const bool stored_in_out = order == WeightOrder::in_out;
  const Matrix d_y_matrix = work.matrix(d_y, out);
  const Matrix x_matrix = work.matrix(x, in);
  work.device->run(Gemm{.transpose_a = Transpose::yes,
                        .a = stored_in_out ? x_matrix : d_y_matrix,
                        .b = stored_in_out ? d_y_matrix : x_matrix,
                        .c = weight_matrix(d_weight.tensor(work.dtype))});
  return d_weight;
}

}  // namespace dstune::layers
