#include "core/train/layers/experts.hpp"

#include <utility>

#include "core/device/operations/copy.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/glu.hpp"
#include "core/device/operations/routing.hpp"
#include "core/device/operations/rows.hpp"
#include "core/device/operations/weighted_rows.hpp"
#include "core/train/layers/activation.hpp"

namespace dstune::layers {

namespace {

/// out's rows are in's rows at these places: x[places].
void take_rows(const Workspace& work, const Buffer& places, const Matrix& in, const Matrix& out) {
  work.device->run(Embedding{places.tensor(DType::int64), in, out});
}

/// in's rows are added to the rows of zeros at these places: what autograd makes of x[places].
void put_rows(const Workspace& work, const Buffer& places, const Matrix& in, const Tensor& all,
              const Matrix& out) {
  work.device->run(FillZero{all});
  work.device->run(EmbeddingBackward{in, places.tensor(DType::int64), out});
}

}  // namespace

Experts::Experts(const ModelNames& names, const std::string& name, const ExpertSizes& sizes,
                 std::string_view activation)
    : sizes_(sizes),
      module_(names.module(name)),
      gate_up_proj_(names.tensor(name + ".gate_up_proj")),
      down_proj_(names.tensor(name + ".down_proj")),
      act_fn_(names.module(name + ".act_fn")),
      activation_(one_kernel_from(activation)) {}

Buffer Experts::of_pairs(const Workspace& work, std::int64_t cols, DType dtype) const {
  return make_buffer(*work.device, MemoryCategory::activations, pairs(work) * cols, dtype);
}

void Experts::sort(const Workspace& work, Tensor chosen) {
  for (Buffer* indices : {&order_, &tokens_, &places_}) {
    *indices = of_pairs(work, 1, DType::int64);
  }
  ends_ = {*work.device, MemoryCategory::activations,
           static_cast<Bytes>(sizes_.count) * sizeof(std::int32_t)};
  work.device->run(SortByExpert{.experts = chosen,
                                .chosen = sizes_.chosen,
                                .groups = sizes_.count,
                                .order = order_.tensor(DType::int64),
                                .tokens = tokens_.tensor(DType::int64),
                                .places = places_.tensor(DType::int64),
                                .ends = ends_.tensor(DType::int8)});
}

void Experts::compute(const Workspace& work, ModuleHooks& hooks) {
  gate_up_ = of_pairs(work, 2 * sizes_.inner, work.dtype);
  const Matrix gate_up = matrix(work, gate_up_, 2 * sizes_.inner);
  work.device->run(GroupedGemm{.transpose_b = Transpose::yes,
                               .groups = groups(),
                               .a = matrix(work, input_, sizes_.outer),
                               .b = gate_up_weight(hooks.parameter(gate_up_proj_)),
                               .c = gate_up});
  hooks.fetch(act_fn_);
  activated_ = of_pairs(work, sizes_.inner, work.dtype);
  product_ = of_pairs(work, sizes_.inner, work.dtype);
  work.device->run(Glu{.kind = activation_,
                       .gate_up = gate_up,
                       .activated = activated_.tensor(work.dtype),
                       .product = product_.tensor(work.dtype)});
  hooks.release(act_fn_);
  result_ = of_pairs(work, sizes_.outer, work.dtype);
  work.device->run(GroupedGemm{.transpose_b = Transpose::yes,
                               .groups = groups(),
                               .a = matrix(work, product_, sizes_.inner),
                               .b = down_weight(hooks.parameter(down_proj_)),
                               .c = matrix(work, result_, sizes_.outer)});
}

// Back in the order of the rows, and k of them at a time.
Buffer Experts::weigh(const Workspace& work, DType weight_type) const {
  Buffer weighted = of_pairs(work, sizes_.outer, weight_type);
  const Matrix by_expert = matrix(work, weighted, sizes_.outer, weight_type);
  work.device->run(ScaleRows{.in = matrix(work, result_, sizes_.outer),
                             .factors = factors_.tensor(weight_type),
                             .out = by_expert});
  const Buffer by_row = of_pairs(work, sizes_.outer, weight_type);
  const Matrix rows = matrix(work, by_row, sizes_.outer, weight_type);
  take_rows(work, places_, by_expert, rows);
  weighted.reset();
  Buffer out = make_buffer(*work.device, MemoryCategory::activations, work.rows() * sizes_.outer,
                           weight_type);
  work.device->run(SumGroups{rows, as_matrix(out.tensor(weight_type), work.rows(), sizes_.outer)});
  if (weight_type == work.dtype) return out;
  Buffer rounded = work.activation(sizes_.outer);
  work.device->run(Cast{out.tensor(weight_type), rounded.tensor(work.dtype)});
  return rounded;
}

Buffer Experts::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x, Tensor chosen,
                        const Buffer& weights, DType weight_type) {
  return inside(hooks, module_, [&] {
    sort(work, chosen);
    input_ = of_pairs(work, sizes_.outer, work.dtype);
    take_rows(work, tokens_, work.matrix(x, sizes_.outer), matrix(work, input_, sizes_.outer));
    factors_ = of_pairs(work, 1, weight_type);
    take_rows(work, order_, matrix(work, weights, 1, weight_type),
              matrix(work, factors_, 1, weight_type));
    compute(work, hooks);
    if (!hooks.is_trainable(gate_up_proj_)) input_.reset();
    if (!hooks.is_trainable(down_proj_)) product_.reset();
    return weigh(work, weight_type);
  });
}

// Autograd takes the gradient by the weights first, whose products are a tensor.
Buffer Experts::unweigh(const Workspace& work, const Buffer& d_out, DType weight_type,
                        Buffer& d_factors) {
  Buffer d_weighted = of_pairs(work, sizes_.outer, weight_type);
  const Matrix d = matrix(work, d_weighted, sizes_.outer, weight_type);
  {
    const Buffer d_rows = of_pairs(work, sizes_.outer, weight_type);
    const Matrix by_row = matrix(work, d_rows, sizes_.outer, weight_type);
    work.device->run(
        RepeatRows{as_matrix(d_out.tensor(weight_type), work.rows(), sizes_.outer), by_row});
    put_rows(work, places_, by_row, d_weighted.tensor(weight_type), d);
  }
  places_.reset();
  d_factors = of_pairs(work, 1, weight_type);
  {
    const Buffer products = of_pairs(work, sizes_.outer, weight_type);
    work.device->run(RowDots{.a = d,
                             .b = matrix(work, result_, sizes_.outer),
                             .products = products.tensor(weight_type),
                             .out = d_factors.tensor(weight_type)});
  }
  Buffer d_result = of_pairs(work, sizes_.outer, weight_type);
  work.device->run(ScaleRows{.in = d,
                             .factors = factors_.tensor(weight_type),
                             .out = matrix(work, d_result, sizes_.outer, weight_type)});
  for (Buffer* used : {&result_, &factors_, &d_weighted}) used->reset();
  if (weight_type == work.dtype) return d_result;
  Buffer rounded = of_pairs(work, sizes_.outer, work.dtype);
  work.device->run(Cast{d_result.tensor(weight_type), rounded.tensor(work.dtype)});
  return rounded;
}

Buffer Experts::down_back(const Workspace& work, ModuleHooks& hooks, Buffer d_result) {
  Buffer d_product = of_pairs(work, sizes_.inner, work.dtype);
  const Matrix d = matrix(work, d_result, sizes_.outer);
  work.device->run(GroupedGemm{.groups = groups(),
                               .a = d,
                               .b = down_weight(hooks.parameter(down_proj_)),
                               .c = matrix(work, d_product, sizes_.inner)});
  Buffer d_weight;
  if (hooks.is_trainable(down_proj_)) {
    d_weight = work.gradient(sizes_.count * sizes_.outer * sizes_.inner);
    work.device->run(GroupedGemmByRows{.groups = groups(),
                                       .a = d,
                                       .b = matrix(work, product_, sizes_.inner),
                                       .c = down_weight(d_weight.tensor(work.dtype))});
  }
  for (Buffer* used : {&product_, &d_result}) used->reset();
  if (d_weight) hooks.gradient_ready(down_proj_, std::move(d_weight));
  return d_product;
}

// The halves are put together by torch.cat.
Buffer Experts::activation_back(const Workspace& work, ModuleHooks& hooks, Buffer d_product) {
  Buffer d_gate = of_pairs(work, sizes_.inner, work.dtype);
  Buffer d_up = of_pairs(work, sizes_.inner, work.dtype);
  hooks.fetch(act_fn_);
  work.device->run(GluBackward{.kind = activation_,
                               .d_product = d_product.tensor(work.dtype),
                               .gate_up = matrix(work, gate_up_, 2 * sizes_.inner),
                               .activated = activated_.tensor(work.dtype),
                               .d_up = d_up.tensor(work.dtype),
                               .d_gate = d_gate.tensor(work.dtype)});
  for (Buffer* used : {&d_product, &gate_up_, &activated_}) used->reset();
  hooks.release(act_fn_);
  Buffer both = of_pairs(work, 2 * sizes_.inner, work.dtype);
  Matrix half = matrix(work, both, 2 * sizes_.inner);
  half.cols = sizes_.inner;
  work.device->run(CopyRows{matrix(work, d_gate, sizes_.inner), half});
  half.data = both.tensor(work.dtype).slice(sizes_.inner, 0).data;
  work.device->run(CopyRows{matrix(work, d_up, sizes_.inner), half});
  return both;
}

Buffer Experts::gate_up_back(const Workspace& work, ModuleHooks& hooks, Buffer d_gate_up) {
  Buffer d_input = of_pairs(work, sizes_.outer, work.dtype);
  const Matrix d = matrix(work, d_gate_up, 2 * sizes_.inner);
  work.device->run(GroupedGemm{.groups = groups(),
                               .a = d,
                               .b = gate_up_weight(hooks.parameter(gate_up_proj_)),
                               .c = matrix(work, d_input, sizes_.outer)});
  Buffer d_weight;
  if (hooks.is_trainable(gate_up_proj_)) {
    d_weight = work.gradient(sizes_.count * 2 * sizes_.inner * sizes_.outer);
    work.device->run(GroupedGemmByRows{.groups = groups(),
                                       .a = d,
                                       .b = matrix(work, input_, sizes_.outer),
                                       .c = gate_up_weight(d_weight.tensor(work.dtype))});
  }
  for (Buffer* used : {&input_, &ends_, &d_gate_up}) used->reset();
  if (d_weight) hooks.gradient_ready(gate_up_proj_, std::move(d_weight));
  return d_input;
}

Buffer Experts::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                         DType weight_type, Buffer& d_weights) {
  return inside(hooks, module_, [&] {
    Buffer wide;
    if (weight_type != work.dtype) {
      wide = work.activation_fp32(sizes_.outer);
      work.device->run(Cast{d_out.tensor(work.dtype), wide.tensor(weight_type)});
    }
    Buffer d_factors;
    Buffer d = unweigh(work, wide ? wide : d_out, weight_type, d_factors);
    wide.reset();
    d = down_back(work, hooks, std::move(d));
    d = activation_back(work, hooks, std::move(d));
    d = gate_up_back(work, hooks, std::move(d));
    d_weights = of_pairs(work, 1, weight_type);
    put_rows(work, order_, matrix(work, d_factors, 1, weight_type), d_weights.tensor(weight_type),
             matrix(work, d_weights, 1, weight_type));
    for (Buffer* used : {&order_, &d_factors}) used->reset();
    Buffer d_x = work.activation(sizes_.outer);
    put_rows(work, tokens_, matrix(work, d, sizes_.outer), d_x.tensor(work.dtype),
             work.matrix(d_x, sizes_.outer));
    tokens_.reset();
    return d_x;
  });
}

}  // namespace dstune::layers
