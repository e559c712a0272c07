#include "core/train/nn/elementwise.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/activations.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/rows.hpp"
#include "core/device/operations/softmax.hpp"

namespace dstune::nn {
namespace {

Value product(const Tape& on, const Value& a, const Value& b) {
  Value out = new_like(on.device(), a);
  on.run(Multiply{.a = a.tensor(), .b = b.tensor(), .out = out.tensor()});
  return out;
}

Value times(const Tape& on, const Value& x, double factor) {
  Value out = new_like(on.device(), x);
  on.run(ScaleTo{x.tensor(), factor, out.tensor()});
  return out;
}

Value affine_of(const Tape& on, const Value& x, double factor, double addend) {
  Value out = new_like(on.device(), x);
  on.run(Activate{.kind = Activation::affine,
                  .x = x.tensor(),
                  .out = out.tensor(),
                  .factor = factor,
                  .addend = addend});
  return out;
}

}  // namespace

Value add(Tape& on, const Value& a, const Value& b) {
  Value out = new_like(on.device(), a);
  on.run(AddBroadcast{.a = a.rows(), .b = b.rows(), .out = out.rows()});
  if (!on.records(a.needs_gradient() || b.needs_gradient())) return out;
  return on.record(std::move(out), [first = a.node, second = b.node](Tape& back, Value d) {
    back.give(first, d);
    back.give(second, std::move(d));
  });
}

Value add_broadcast(Tape& on, const Value& a, const Value& b) {
  if (b.matrix.rows == a.matrix.rows) return add(on, a, b);
  Value out = new_like(on.device(), a);
  on.run(AddBroadcast{.a = a.rows(), .b = b.rows(), .out = out.rows()});
  if (!on.records(a.needs_gradient() || b.needs_gradient())) return out;
  return on.record(std::move(out),
                   [first = a.node, second = b.node, rows = b.matrix.rows](Tape& back, Value d) {
                     Value d_b;
                     if (second != Value::kNoNode) {
                       d_b = new_value(back.device(), d.matrix.dtype, rows, d.matrix.cols);
                       back.run(AddBroadcastBackward{d.rows(), d_b.rows()});
                     }
                     back.give(first, std::move(d));
                     back.give(second, std::move(d_b));
                   });
}

Value multiply(Tape& on, const Value& a, const Value& b) {
  const bool records = on.records(a.needs_gradient() || b.needs_gradient());
  Saved saved_b = records && a.needs_gradient() ? on.save(b) : Saved();
  Saved saved_a = records && b.needs_gradient() ? on.save(a) : Saved();
  Value out = product(on, a, b);
  if (!records) return out;
  return on.record(std::move(out),
                   [first = a.node, second = b.node, saved_a = std::move(saved_a),
                    saved_b = std::move(saved_b)](Tape& back, const Value& d) mutable {
                     const Value kept_a = saved_a.take(back);
                     const Value kept_b = saved_b.take(back);
                     if (kept_b) back.give(first, product(back, d, kept_b));
                     if (kept_a) back.give(second, product(back, d, kept_a));
                   });
}

Value scale(Tape& on, const Value& x, double factor) {
  Value out = times(on, x, factor);
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [factor, node = x.node](Tape& back, const Value& d) {
    back.give(node, times(back, d, factor));
  });
}

Value affine(Tape& on, const Value& x, double factor, double addend) {
  Value out = affine_of(on, x, factor, addend);
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [factor, node = x.node](Tape& back, Value d) {
    back.give(node, factor == 1 ? std::move(d) : affine_of(back, d, factor, 0));
  });
}

Value activate(Tape& on, Activation kind, const Value& x) {
  const bool records = on.records(x.needs_gradient());
  const bool saves_out = saves_result(kind);
  Saved saved;
  if (records && !saves_out) saved = on.save(x);
  Value out = new_like(on.device(), x);
  on.run(Activate{.kind = kind, .x = x.tensor(), .out = out.tensor()});
  if (!records) return out;
  if (saves_out) saved = on.save(out);
  return on.record(std::move(out), [kind, node = x.node, saved = std::move(saved)](
                                       Tape& back, const Value& d) mutable {
    const Value kept = saved.take(back);
    Value d_x = new_like(back.device(), d);
    back.run(ActivateBackward{
        .kind = kind, .d_out = d.tensor(), .saved = kept.tensor(), .d_x = d_x.tensor()});
    back.give(node, std::move(d_x));
  });
}

// Each result takes the place of its operand, as in transformers and TRL.
Value soft_cap(Tape& on, Value x, double c) {
  x = scale(on, x, 1 / c);
  x = activate(on, Activation::tanh, x);
  return scale(on, x, c);
}

Value softmax(Tape& on, const Value& x, DType dtype) {
  Value probs = new_stack(on.device(), dtype, x.count, x.matrix.rows, x.matrix.cols);
  on.run(Softmax{x.rows(), probs.rows()});
  if (!on.records(x.needs_gradient())) return probs;
  const bool keeps_input = on.context().attention == AttentionKind::eager_torch_1_10;
  Saved saved_x = keeps_input ? on.save(x) : Saved();
  Saved saved = on.save(probs);
  return on.record(
      std::move(probs), [of_input = x.matrix.dtype, node = x.node, saved_x = std::move(saved_x),
                         saved = std::move(saved)](Tape& back, const Value& d) mutable {
        const Value input = saved_x.take(back);
        const Value kept = saved.take(back);
        Value d_x = new_stack(back.device(), of_input, d.count, d.matrix.rows, d.matrix.cols);
        back.run(SoftmaxBackward{d.rows(), kept.rows(), d_x.rows()});
        back.give(node, std::move(d_x));
      });
}

namespace {

/// x itself if it is dense, else a dense copy of it.
Value contiguous(const Tape& on, const Value& x) {
  if (x.is_dense()) return x;
  Value copy = new_like(on.device(), x);
  on.run(CopyRows{x.matrix, copy.matrix});
  return copy;
}

Value drop(Tape& on, const Value& x, double probability, std::uint64_t seed) {
  Value mask =
      value_of(Buffer(on.device(), MemoryCategory::activations, static_cast<Bytes>(x.numel())),
               DType::int8, x.count * x.matrix.rows, x.matrix.cols);
  Value out = new_like(on.device(), x);
  on.run(dstune::Dropout{.in = contiguous(on, x).tensor(),
                         .probability = probability,
                         .seed = seed,
                         .mask = mask.tensor(),
                         .out = out.tensor()},
         on.device().overlaps() ? kOperatorCalls<dstune::Dropout> : kDropoutCallsOnCpus);
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [probability, node = x.node, saved = on.save(mask)](
                                       Tape& back, const Value& d) mutable {
    const Value kept = saved.take(back);
    Value d_x = new_like(back.device(), d);
    back.run(DropoutBackward{.d_out = d.tensor(),
                             .probability = probability,
                             .mask = kept.tensor(),
                             .d_in = d_x.tensor()});
    back.give(node, std::move(d_x));
  });
}

// NewGELUActivation: one operation stands for eight elementwise kernels, and keeps what they save.
Value gelu_new(Tape& on, const Value& x) {
  const auto saved_of = [](const Value& tanh, const Value& half_x, const Value& one_plus_tanh) {
    return GeluSaved{tanh.tensor(), half_x.tensor(), one_plus_tanh.tensor()};
  };
  Value tanh = new_like(on.device(), x);
  Value half_x = new_like(on.device(), x);
  Value one_plus_tanh = new_like(on.device(), x);
  Value out = new_like(on.device(), x);
  on.run(GeluNew{
      .x = x.tensor(), .saved = saved_of(tanh, half_x, one_plus_tanh), .out = out.tensor()});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [saved_of, node = x.node,
                                    saved = std::array{on.save(x), on.save(tanh), on.save(half_x),
                                                       on.save(one_plus_tanh)}](
                                       Tape& back, const Value& d) mutable {
    const Value kept[] = {saved[0].take(back), saved[1].take(back), saved[2].take(back),
                          saved[3].take(back)};
    Value d_x = new_like(back.device(), d);
    back.run(GeluNewBackward{.d_out = d.tensor(),
                             .x = kept[0].tensor(),
                             .saved = saved_of(kept[1], kept[2], kept[3]),
                             .d_x = d_x.tensor()});
    back.give(node, std::move(d_x));
  });
}

// FastGELUActivation: 0.5 x (1 + tanh(0.79788 x (1 + 0.044715 x x)))
Value gelu_fast(Tape& on, const Value& x) {
  constexpr double kRootTwoOverPi = 0.7978845608;
  constexpr double kCubic = 0.044715;
  const Value half = affine(on, x, 0.5);
  const Value root = affine(on, x, kRootTwoOverPi);
  const Value cube = affine(on, multiply(on, affine(on, x, kCubic), x), 1, 1);
  const Value tanh = activate(on, Activation::tanh, multiply(on, root, cube));
  return multiply(on, half, affine(on, tanh, 1, 1));
}

// QuickGELUActivation: x sigmoid(1.702 x)
Value quick_gelu(Tape& on, const Value& x) {
  constexpr double kSteepness = 1.702;
  return multiply(on, x, activate(on, Activation::sigmoid, affine(on, x, kSteepness)));
}

}  // namespace

Value Dropout::operator()(Tape& on, Value x, std::uint64_t seed) const {
  return run_module(on, module, std::move(x), [&](const Value& in) {
    return probability == 0 ? in : drop(on, in, probability, seed);
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

Value ActivationFunction::operator()(Tape& on, Value x) const {
  return run_module(on, module_, std::move(x), [&](const Value& in) {
    if (name_ == "gelu_new" || name_ == "gelu_accurate") return gelu_new(on, in);
    if (name_ == "gelu_fast") return gelu_fast(on, in);
    if (name_ == "quick_gelu") return quick_gelu(on, in);
    return activate(on, one_kernel_from(name_), in);
  });
}

}  // namespace dstune::nn
