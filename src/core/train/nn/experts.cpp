#include "core/train/nn/experts.hpp"

#include <utility>

#include "core/device/operations/activations.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/routing.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/kept_weight.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::nn {
namespace {

/// x[places]
Value take_rows(Tape& on, const Value& x, const Value& places) {
  Value out = new_value(on.device(), x.matrix.dtype, places.numel(), x.matrix.cols);
  on.run(dstune::Embedding{places.tensor(), x.matrix, out.matrix});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [node = x.node, rows = x.matrix.rows, saved = on.save(places)](
                                       Tape& back, const Value& d) mutable {
    const Value kept = saved.take(back);
    Value d_x = new_value(back.device(), d.matrix.dtype, rows, d.matrix.cols);
    back.run(FillZero{d_x.tensor()});
    back.run(EmbeddingBackward{d.matrix, kept.tensor(), d_x.matrix});
    back.give(node, std::move(d_x));
  });
}

/// Sums of k rows each: what the k experts of one row of x gave.
Value sum_groups(Tape& on, const Value& x, std::int64_t k) {
  Value out = new_value(on.device(), x.matrix.dtype, x.matrix.rows / k, x.matrix.cols);
  on.run(SumGroups{x.matrix, out.matrix});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [node = x.node, k](Tape& back, const Value& d) {
    Value d_x = new_value(back.device(), d.matrix.dtype, d.matrix.rows * k, d.matrix.cols);
    back.run(RepeatRows{d.matrix, d_x.matrix});
    back.give(node, std::move(d_x));
  });
}

/// Each expert's rows multiplied by its part (out, in) of the weight, transposed:
/// torch._grouped_mm, which saves weight.transpose(-2, -1), and so a gathered weight's memory.
Value grouped_product(Tape& on, const Value& x, std::size_t weight, const Value& ends,
                      std::int64_t experts, std::int64_t out) {
  const std::int64_t in = x.matrix.cols;
  const bool trains = on.hooks().is_trainable(weight);
  const auto groups = [experts](const Value& of) { return RowGroups{of.tensor(), experts}; };
  const auto matrix = [experts, out, in](const Tensor& tensor) {
    return as_matrix(tensor, experts * out, in);
  };
  const bool records = on.records(x.needs_gradient() || trains);
  Saved saved_weight = records && x.needs_gradient() ? on.save(kept_by_view(on, weight)) : Saved();
  Saved saved_x = records && trains ? on.save(x) : Saved();
  Saved saved_ends = records ? on.save(ends) : Saved();
  Value y = new_value(on.device(), x.matrix.dtype, x.matrix.rows, out);
  on.run(GroupedGemm{.transpose_b = Transpose::yes,
                     .groups = groups(ends),
                     .a = x.matrix,
                     .b = matrix(on.hooks().parameter(weight)),
                     .c = y.matrix});
  if (!records) return y;
  NodeParameters trained;
  if (trains) trained.add(weight);
  return on.record(
      std::move(y), trained,
      [groups, matrix, trains, weight, in, numel = experts * out * in, node = x.node,
       saved_weight = std::move(saved_weight), saved_x = std::move(saved_x),
       saved_ends = std::move(saved_ends)](Tape& back, const Value& d) mutable {
        const Value kept_weight = saved_weight.take(back);
        const Value kept_x = saved_x.take(back);
        const Value kept_ends = saved_ends.take(back);
        Value d_x = new_value(back.device(), d.matrix.dtype, d.matrix.rows, in);
        back.run(GroupedGemm{.groups = groups(kept_ends),
                             .a = d.matrix,
                             .b = matrix(back.hooks().parameter(weight)),
                             .c = d_x.matrix});
        back.give(node, std::move(d_x));
        if (!trains) return;
        Buffer d_weight = back.context().gradient(numel);
        back.run(GroupedGemmByRows{.groups = groups(kept_ends),
                                   .a = d.matrix,
                                   .b = kept_x.matrix,
                                   .c = matrix(d_weight.tensor(back.context().dtype))});
        back.give(weight, std::move(d_weight), Memory::own);
      });
}

/// f(gate) up of x (S, 2 f), whose halves are gate and up; backward joins their gradients
/// (torch.cat).
Value gated(Tape& on, const Value& x, Activation kind) {
  const std::int64_t half = x.matrix.cols / 2;
  const Value activated = new_value(on.device(), x.matrix.dtype, x.matrix.rows, half);
  Value product = new_like(on.device(), activated);
  on.run(Glu{.kind = kind,
             .gate_up = x.matrix,
             .activated = activated.tensor(),
             .product = product.tensor()});
  if (!on.records(x.needs_gradient())) return product;
  return on.record(std::move(product),
                   [kind, half, node = x.node, saved_x = on.save(x),
                    saved_activated = on.save(activated)](Tape& back, const Value& d) mutable {
                     Value d_gate = new_like(back.device(), d);
                     Value d_up = new_like(back.device(), d);
                     {
                       const Value kept_x = saved_x.take(back);
                       const Value kept = saved_activated.take(back);
                       back.run(GluBackward{.kind = kind,
                                            .d_product = d.tensor(),
                                            .gate_up = kept_x.matrix,
                                            .activated = kept.tensor(),
                                            .d_up = d_up.tensor(),
                                            .d_gate = d_gate.tensor()});
                     }
                     Value both = new_value(back.device(), d.matrix.dtype, d.matrix.rows, 2 * half);
                     Matrix part = both.matrix;
                     part.cols = half;
                     back.run(CopyRows{d_gate.matrix, part});
                     part.data = both.tensor().slice(half, 0).data;
                     back.run(CopyRows{d_up.matrix, part});
                     back.give(node, std::move(both));
                   });
}

/// The places of the rows when they are sorted by expert: see SortByExpert.
struct Order {
  Value order, tokens, places, ends;
};

Order sorted(const Tape& on, const Value& experts, std::int64_t count) {
  const std::int64_t pairs = experts.numel();
  const auto indices = [&] { return new_value(on.device(), DType::int64, 1, pairs); };
  Order order{indices(), indices(), indices(), {}};
  constexpr std::int64_t kEnd = sizeof(std::int32_t);
  order.ends = new_value(on.device(), DType::int8, 1, count * kEnd);
  on.run(SortByExpert{.experts = experts.tensor(),
                      .chosen = experts.matrix.cols,
                      .groups = count,
                      .order = order.order.tensor(),
                      .tokens = order.tokens.tensor(),
                      .places = order.places.tensor(),
                      .ends = order.ends.tensor()});
  return order;
}

}  // namespace

Experts::Experts(const ModelNames& names, const std::string& name, std::string_view activation)
    : count_(names.shape(names.tensor(name + ".gate_up_proj")).at(0)),
      module_(names.module(name)),
      gate_up_proj_(names.tensor(name + ".gate_up_proj")),
      down_proj_(names.tensor(name + ".down_proj")),
      act_fn_(names.module(name + ".act_fn")),
      inner_(names.shape(down_proj_).at(2)),
      activation_(one_kernel_from(activation)) {}

// The experts' results go back into the order of x's rows, and k of them at a time are summed.
Value Experts::operator()(Tape& on, const Value& x, const Routes& routes) const {
  return run_module(on, module_, x, [&](const Value& in) {
    const std::int64_t h = in.matrix.cols;
    const Order order = sorted(on, routes.experts, count_);
    const Value own = take_rows(on, in, order.tokens);
    const Value weights = reshape(on, routes.weights, routes.weights.numel(), 1);
    const Value factors = take_rows(on, weights, order.order);
    Value rows = grouped_product(on, own, gate_up_proj_, order.ends, count_, 2 * inner_);
    rows = run_module(on, act_fn_, std::move(rows),
                      [&](const Value& both) { return gated(on, both, activation_); });
    rows = grouped_product(on, rows, down_proj_, order.ends, count_, h);
    rows = take_rows(on, scale_rows(on, rows, factors), order.places);
    return cast(on, sum_groups(on, rows, routes.experts.matrix.cols), in.matrix.dtype);
  });
}

Value scale_rows(Tape& on, const Value& x, const Value& factors) {
  const DType dtype = factors.matrix.dtype;
  const bool records = on.records(x.needs_gradient() || factors.needs_gradient());
  Saved saved_x = records && factors.needs_gradient() ? on.save(x) : Saved();
  Saved saved_factors = records && x.needs_gradient() ? on.save(factors) : Saved();
  Value out = new_value(on.device(), dtype, x.matrix.rows, x.matrix.cols);
  on.run(ScaleRows{.in = x.matrix, .factors = factors.tensor(), .out = out.matrix});
  if (!records) return out;
  return on.record(
      std::move(out), [dtype, of_x = x.matrix.dtype, first = x.node, second = factors.node,
                       saved_x = std::move(saved_x), saved_factors = std::move(saved_factors)](
                          Tape& back, const Value& d) mutable {
        const Value kept_x = saved_x.take(back);
        const Value kept_factors = saved_factors.take(back);
        // Autograd computes the gradient by the factors first, whose products are a tensor of their
        // own.
        Value d_factors;
        if (kept_x) {
          d_factors = new_value(back.device(), dtype, d.matrix.rows, 1);
          const Value products = new_like(back.device(), d);
          back.run(RowDots{.a = d.matrix,
                           .b = kept_x.matrix,
                           .products = products.tensor(),
                           .out = d_factors.tensor()});
        }
        Value d_x;
        if (kept_factors) {
          d_x = new_like(back.device(), d);
          back.run(ScaleRows{.in = d.matrix, .factors = kept_factors.tensor(), .out = d_x.matrix});
          if (of_x != dtype) {
            Value rounded = new_value(back.device(), of_x, d.matrix.rows, d.matrix.cols);
            back.run(Cast{d_x.tensor(), rounded.tensor()});
            d_x = std::move(rounded);
          }
        }
        back.give(first, std::move(d_x));
        back.give(second, std::move(d_factors));
      });
}

}  // namespace dstune::nn
