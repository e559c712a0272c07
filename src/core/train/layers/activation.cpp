#include "core/train/layers/activation.hpp"

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "core/base/text.hpp"

namespace dstune::layers {

Buffer OneKernel::forward(const Workspace& work, ModuleHooks& hooks, Buffer x) {
  return inside_if_any(hooks, module, [&] {
    Buffer y = work.activation(size);
    work.device->run(
        Activate{.kind = kind, .x = x.tensor(work.dtype), .out = y.tensor(work.dtype)});
    if (!saves_result(kind)) input = std::move(x);
    return y;
  });
}

Buffer OneKernel::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y, Buffer y) {
  if (!saves_result(kind)) y.reset();
  return inside_if_any(hooks, module, [&] {
    Buffer d_x = work.activation(size);
    work.device->run(ActivateBackward{.kind = kind,
                                      .d_out = d_y.tensor(work.dtype),
                                      .saved = (y ? y : input).tensor(work.dtype),
                                      .d_x = d_x.tensor(work.dtype)});
    for (Buffer* used : {&input, &y, &d_y}) used->reset();
    return d_x;
  });
}

Activation one_kernel_from(std::string_view name) {
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "tanh") return Activation::tanh;
  if (name == "sigmoid") return Activation::sigmoid;
  throw std::invalid_argument(concat("no activation function of one kernel is called ", name));
}

ActivationFunction::ActivationFunction(std::optional<std::size_t> module, std::string_view name,
                                       std::int64_t size)
    : function_(function_of(module, name, size)) {}

ActivationFunction::Function ActivationFunction::function_of(std::optional<std::size_t> module,
                                                             std::string_view name,
                                                             std::int64_t size) {
  if (name == "gelu_new" || name == "gelu_accurate")
    return NewGelu{.module = module.value(), .size = size};
  if (name == "gelu_fast") return FastGelu{.module = module.value(), .size = size};
  if (name == "quick_gelu") return QuickGelu{.module = module.value(), .size = size};
  return OneKernel{.module = module, .size = size, .kind = one_kernel_from(name)};
}

bool ActivationFunction::reads_result() const {
  const auto* one = std::get_if<OneKernel>(&function_);
  return one != nullptr && saves_result(one->kind);
}

Buffer ActivationFunction::forward(const Workspace& work, ModuleHooks& hooks, Buffer x) {
  return std::visit([&](auto& own) { return own.forward(work, hooks, std::move(x)); }, function_);
}

Buffer ActivationFunction::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y,
                                    Buffer y) {
  if (auto* one = std::get_if<OneKernel>(&function_)) {
    return one->backward(work, hooks, std::move(d_y), std::move(y));
  }
  y.reset();
  return std::visit(
      [&](auto& own) -> Buffer {
        if constexpr (std::is_same_v<std::decay_t<decltype(own)>, OneKernel>) {
          return {};
        } else {
          return own.backward(work, hooks, std::move(d_y));
        }
      },
      function_);
}

}  // namespace dstune::layers
