#include "core/train/families/deberta/deberta_convolution.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"
#include "core/device/operations/bias.hpp"
#include "core/device/operations/copy.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/scale.hpp"
#include "core/device/operations/unfold.hpp"
#include "core/train/families/deberta/deberta_names.hpp"
#include "core/train/families/deberta/deberta_seeds.hpp"

namespace dstune::deberta {

namespace {

using layers::Workspace;

constexpr layers::Scope kScopes[] = {{".conv", 0, 0}};

std::string name_in(const char* part) { return concat(kEncoder, ".conv", part); }

// Others save what goes into them; the sum behind saves neither.
bool saves_its_result(std::string_view activation) {
  return activation == "relu" || activation == "tanh" || activation == "sigmoid";
}

Buffer copy_of(const Workspace& work, const Buffer& in) {
  const Tensor from = in.tensor(work.dtype);
  Buffer out = make_buffer(*work.device, MemoryCategory::activations, from.numel, work.dtype);
  work.device->run(Copy{from, out.tensor(work.dtype)});
  return out;
}

}  // namespace

Convolution::Convolution(const ModelSpec& spec, const DebertaSettings& settings,
                         const ModelNames& names)
    : size_(spec.hidden_size),
      width_(settings.conv_kernel_size),
      scopes_(names, std::string(kEncoder), kScopes),
      module_(names.module(name_in(".conv"))),
      weight_(names.tensor(name_in(".conv.weight"))),
      bias_(names.tensor(name_in(".conv.bias"))),
      dropout_{.module = names.module(name_in(".dropout")), .probability = spec.residual_dropout},
      activation_(std::nullopt, settings.conv_activation, spec.hidden_size),
      saves_result_(saves_its_result(settings.conv_activation)),
      norm_(names, name_in(".LayerNorm"), spec.hidden_size, spec.layer_norm_epsilon) {}

Buffer Convolution::unfolded(const Workspace& work) const {
  Buffer out = work.activation(size_ * width_);
  work.device->run(Unfold{.in = work.matrix(input_, size_),
                          .sequence = work.sequence_length,
                          .out = work.matrix(out, size_ * width_)});
  return out;
}

Buffer Convolution::convolve(const Workspace& work, ModuleHooks& hooks) const {
  return layers::inside(hooks, module_, [&] {
    const Buffer seen = unfolded(work);
    Buffer y = work.activation(size_);
    work.device->run(Gemm{.transpose_b = Transpose::yes,
                          .a = work.matrix(seen, size_ * width_),
                          .b = weights(hooks.parameter(weight_)),
                          .c = work.matrix(y, size_),
                          .bias = hooks.parameter(bias_)});
    return y;
  });
}

// The masks of tokens are filled, where PyTorch makes them of attention's.
Buffer Convolution::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x,
                            Buffer residual, std::uint64_t seed) {
  Buffer out;
  scopes_.forward(hooks, 0, [&] {
    input_ = copy_of(work, x);
    Buffer y = convolve(work, hooks);
    y = copy_of(work, y);
    hidden_ = work.mask(1);
    work.device->run(FillZero{hidden_.tensor(DType::int8)});
    y = dropout_.forward(work, hooks, convolution_seed(seed), std::move(y));
    activated_ = activation_.forward(work, hooks, std::move(y));
    sum_ = std::move(residual);
    work.device->run(Add{sum_.tensor(work.dtype), activated_.tensor(work.dtype)});
    if (!saves_result_) activated_.reset();
    const Buffer normed = norm_.forward(work, hooks, sum_, stats_);
    mask_ = work.activation(1);
    work.device->run(FillConstant{mask_.tensor(work.dtype), 1});
    out = work.activation(size_);
    work.device->run(ScaleTo{normed.tensor(work.dtype), 1, out.tensor(work.dtype)});
  });
  return out;
}

Convolution::Gradients Convolution::backward(const Workspace& work, ModuleHooks& hooks,
                                             Buffer d_out) {
  Gradients gradients;
  scopes_.backward(hooks, 0, [&] {
    Buffer d_normed = copy_of(work, d_out);
    d_out.reset();
    mask_.reset();
    gradients.residual = norm_.backward(work, hooks, d_normed, sum_, stats_);
    for (Buffer* used : {&d_normed, &sum_, &stats_}) used->reset();
    Buffer d_y =
        activation_.backward(work, hooks, copy_of(work, gradients.residual), std::move(activated_));
    Buffer d_whole = dropout_.backward(work, hooks, d_y);
    if (d_whole) d_y = std::move(d_whole);
    d_y = copy_of(work, d_y);
    hidden_.reset();
    gradients.x = convolve_backward(work, hooks, std::move(d_y));
    input_.reset();
  });
  return gradients;
}

Buffer Convolution::convolve_backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y) {
  hooks.fetch(module_);
  const Matrix d_rows = work.matrix(d_y, size_);
  Buffer d_weight;
  if (hooks.is_trainable(weight_)) d_weight = work.gradient(size_ * size_ * width_);
  Buffer seen = unfolded(work);
  if (d_weight) {
    work.device->run(Gemm{.transpose_a = Transpose::yes,
                          .a = d_rows,
                          .b = work.matrix(seen, size_ * width_),
                          .c = weights(d_weight.tensor(work.dtype))});
  }
  work.device->run(Gemm{
      .a = d_rows, .b = weights(hooks.parameter(weight_)), .c = work.matrix(seen, size_ * width_)});
  Buffer d_x = work.activation(size_);
  work.device->run(Fold{.in = work.matrix(seen, size_ * width_),
                        .sequence = work.sequence_length,
                        .out = work.matrix(d_x, size_)});
  seen.reset();
  Buffer d_bias;
  if (hooks.is_trainable(bias_)) {
    d_bias = work.gradient(size_);
    work.device->run(BiasGradient{d_rows, d_bias.tensor(work.dtype)});
  }
  if (d_weight) hooks.gradient_ready(weight_, std::move(d_weight));
  if (d_bias) hooks.gradient_ready(bias_, std::move(d_bias));
  hooks.release(module_);
  return d_x;
}

}  // namespace dstune::deberta
