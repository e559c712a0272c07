#include "core/train/families/deberta/deberta_convolution.hpp"

#include <optional>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/batch_context.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::deberta {
namespace {

/// masked_fill_() of hidden tokens, in place: no token is hidden, and only the gradient is a new
/// tensor.
Value hide_tokens(Tape& on, const Value& x) {
  Value hidden =
      value_of(Buffer(on.device(), MemoryCategory::activations, static_cast<Bytes>(x.matrix.rows)),
               DType::int8, x.matrix.rows, 1);
  on.run(FillZero{hidden.tensor()});
  if (!on.records(x.needs_gradient())) return x;
  return on.record(x, [node = x.node, saved = on.save(hidden)](Tape& back, const Value& d) mutable {
    saved.take(back);
    Value d_x = new_like(back.device(), d);
    back.run(Copy{d.tensor(), d_x.tensor()});
    back.give(node, std::move(d_x));
  });
}

std::uint64_t convolution_seed(std::uint64_t seed) { return seed_of(seed_of(seed)); }

}  // namespace

Value times_mask(Tape& on, const Value& x) {
  const auto times = [](const Tape& in, const Value& rows) {
    Value out = new_like(in.device(), rows);
    in.run(ScaleTo{rows.tensor(), 1, out.tensor()});
    return out;
  };
  const Value mask = new_value(on.device(), x.matrix.dtype, x.matrix.rows, 1);
  on.run(FillConstant{mask.tensor(), 1});
  Value out = times(on, x);
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [times, node = x.node, saved = on.save(mask)](
                                       Tape& back, const Value& d) mutable {
    const Value kept = saved.take(back);
    back.give(node, times(back, d));
  });
}

Convolution::Convolution(const ModelSpec& spec, const DebertaSettings& settings,
                         const ModelNames& names, const std::string& name)
    : module_(names.module(name)),
      conv_(names.module(name + ".conv")),
      weight_(names.tensor(name + ".conv.weight")),
      bias_(names.tensor(name + ".conv.bias")),
      size_(names.shape(weight_).at(0)),
      width_(names.shape(weight_).at(2)),
      dropout_{names.module(name + ".dropout"), spec.residual_dropout},
      activation_(std::nullopt, settings.conv_activation),
      norm_(names, name + ".LayerNorm", spec.layer_norm_epsilon) {}

Value Convolution::operator()(Tape& on, const Value& x, const Value& residual,
                              std::uint64_t seed) const {
  return run_module(on, module_, x, [&](const Value& in) {
    Value out = nn::copy(on, run_module(on, conv_, nn::copy(on, in), [&](const Value& columns) {
                           return convolve(on, columns);
                         }));
    out = hide_tokens(on, out);
    out = activation_(on, dropout_(on, out, convolution_seed(seed)));
    const Value sum = nn::add(on, residual, out);
    const Value normed = norm_(on, sum);
    return times_mask(on, normed);
  });
}

Value Convolution::unfolded(const Tape& on, const Value& x) const {
  Value out = new_value(on.device(), x.matrix.dtype, x.matrix.rows, size_ * width_);
  on.run(Unfold{.in = x.matrix, .sequence = on.context().sequence_length, .out = out.matrix});
  return out;
}

Value Convolution::convolve(Tape& on, const Value& x) const {
  const bool trains_weight = on.hooks().is_trainable(weight_);
  const bool trains_bias = on.hooks().is_trainable(bias_);
  const bool records = on.records(x.needs_gradient() || trains_weight || trains_bias);
  Saved saved = records ? on.save(x) : Saved();
  Value y = new_like(on.device(), x);
  {
    const Value seen = unfolded(on, x);
    on.run(Gemm{.transpose_b = Transpose::yes,
                .a = seen.matrix,
                .b = weights(on.hooks().parameter(weight_)),
                .c = y.matrix,
                .bias = on.hooks().parameter(bias_)});
  }
  if (!records) return y;
  NodeParameters trained;
  if (trains_weight) trained.add(weight_);
  if (trains_bias) trained.add(bias_);
  return on.record(
      std::move(y), trained,
      [this, node = x.node, saved = std::move(saved)](Tape& back, const Value& d) mutable {
        convolve_backward(back, d, saved.take(back), node);
      });
}

void Convolution::convolve_backward(Tape& back, const Value& d, const Value& x,
                                    std::size_t node) const {
  Buffer d_weight;
  if (back.hooks().is_trainable(weight_))
    d_weight = back.context().gradient(size_ * size_ * width_);
  Value seen = unfolded(back, x);
  if (d_weight) {
    back.run(Gemm{.transpose_a = Transpose::yes,
                  .a = d.matrix,
                  .b = seen.matrix,
                  .c = weights(d_weight.tensor(d.matrix.dtype))});
  }
  back.run(Gemm{.a = d.matrix, .b = weights(back.hooks().parameter(weight_)), .c = seen.matrix});
  Value d_x = new_like(back.device(), x);
  back.run(Fold{.in = seen.matrix, .sequence = back.context().sequence_length, .out = d_x.matrix});
  seen = {};
  Buffer d_bias;
  if (back.hooks().is_trainable(bias_)) {
    d_bias = back.context().gradient(size_);
    back.run(BiasGradient{d.matrix, d_bias.tensor(d.matrix.dtype)});
  }
  back.give(node, std::move(d_x));
  if (d_weight) back.give(weight_, std::move(d_weight), Memory::own);
  if (d_bias) back.give(bias_, std::move(d_bias), Memory::own);
}

}  // namespace dstune::deberta
