#include "core/train/nn/linear.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/train/nn/kept_weight.hpp"

namespace dstune::nn {
namespace {

// True if DeepSpeed's function runs in place of torch.nn.functional.linear, as in stage 3. Conv1D
// calls another function of torch's, which DeepSpeed leaves alone.
bool is_deepspeeds(const Tape& on, const Product& layer) {
  return !layer.is_conv1d && on.context().linear == LinearLayers::memory_efficient;
}

// torch.addmm adds a bias of one dimension in the product's epilogue (CUBLASLT_EPILOGUE_BIAS)
// unless a side is 1: isInputCompliesAddmmCudaLt of PyTorch's Blas.cpp.
bool may_add_on_the_way_out(const Gemm& product) {
  return product.a.rows > 1 && product.a.cols > 1 && product.c.cols > 1;
}

Matrix weight_matrix(const Product& layer, const Tensor& tensor) {
  return layer.is_conv1d ? as_matrix(tensor, layer.in, layer.out)
                         : as_matrix(tensor, layer.out, layer.in);
}

// What keeps the weight for backward. torch.nn.functional.linear saves a view of it, weight.t(),
// and so its memory; a function that is given the parameter itself saves that, whose memory
// DeepSpeed takes away when it releases the parameter. A checkpoint's second forward saves a
// detached copy of what needs a gradient, and that has the memory, too.
Value kept_weight(const Tape& on, const Product& layer) {
  const bool by_view = !layer.is_conv1d && !is_deepspeeds(on, layer);
  const bool by_copy = on.refills() && on.hooks().is_trainable(layer.weight);
  return by_view || by_copy ? kept_by_view(on, layer.weight) : Value();
}

Buffer bias_gradient(const Tape& on, const Product& layer, const Value& d_y) {
  Buffer d_bias = on.context().gradient(layer.out);
  on.run(BiasGradient{d_y.rows(), d_bias.tensor(on.context().dtype)});
  return d_bias;
}

int calls_of(const Product& layer) {
  if (layer.takes_matrix) return kMatrixCalls;
  return layer.is_conv1d ? kConv1dCalls : kOperatorCalls<Gemm>;
}

Value input_gradient(const Tape& on, const Product& layer, const Value& d_y) {
  Value d_x = new_value(on.device(), on.context().dtype, d_y.matrix.rows, layer.in);
  on.run(Gemm{.transpose_b = layer.is_conv1d ? Transpose::yes : Transpose::no,
              .a = d_y.rows(),
              .b = weight_matrix(layer, on.hooks().parameter(layer.weight)),
              .c = d_x.rows()},
         layer.takes_matrix ? kMatrixCalls : kOperatorCalls<Gemm>);
  return d_x;
}

Buffer weight_gradient(const Tape& on, const Product& layer, const Value& d_y, const Value& x) {
  Buffer d_weight = on.context().gradient(layer.in * layer.out);
  on.run(Gemm{.transpose_a = Transpose::yes,
              .a = layer.is_conv1d ? x.matrix : d_y.rows(),
              .b = layer.is_conv1d ? d_y.rows() : x.matrix,
              .c = weight_matrix(layer, d_weight.tensor(on.context().dtype))},
         layer.is_conv1d ? kConv1dWeightGradientCalls : kWeightGradientCalls);
  return d_weight;
}

}  // namespace

Value Product::operator()(Tape& on, Value x) const {
  return run_module(on, module, std::move(x),
                    [&](const Value& rows) { return multiply(on, rows); });
}

// AddmmBackward0 gives the whole d_y as the bias's gradient. Autograd's engine sums it up when the
// node has run and what it has unpacked is gone (validate_outputs).
//
// Autograd saves x before torch's product, and after DeepSpeed's function, which saves x also where
// the weight is frozen. In torch the weight's gradient goes through a transposition, which is a
// view, and so its turn is after the bias's; DeepSpeed gives input, weight and bias in this order.
Value Product::multiply(Tape& on, const Value& x) const {
  const BatchContext& context = on.context();
  const ModuleHooks& hooks = on.hooks();
  const bool own_function = is_deepspeeds(on, *this);
  const bool trains_weight = hooks.is_trainable(weight);
  const bool trains_bias = bias && hooks.is_trainable(*bias);
  const bool records = on.records(x.needs_gradient() || trains_weight || trains_bias);
  Saved saved_x;
  Saved saved_weight;
  const auto save = [&] {
    if (!records) return;
    if (trains_weight || own_function) saved_x = on.save(x);
    if (x.needs_gradient() || own_function) saved_weight = on.save(kept_weight(on, *this));
  };
  if (!own_function) save();
  Value y = new_value(*context.device, context.dtype, x.matrix.rows, out);
  Gemm product{.transpose_b = is_conv1d ? Transpose::no : Transpose::yes,
               .a = x.matrix,
               .b = weight_matrix(*this, hooks.parameter(weight)),
               .c = y.matrix};
  // DeepSpeed's function is a product and then `output += bias`, where x has three dimensions.
  const bool adds_apart = own_function && !takes_matrix;
  const bool on_the_way = bias && may_add_on_the_way_out(product) && !adds_apart;
  if (on_the_way) product.bias = hooks.parameter(*bias);
  on.run(product, calls_of(*this));
  if (bias && !on_the_way) on.run(AddBias{product.c, hooks.parameter(*bias)});
  if (own_function) save();
  if (!records) return y;

  NodeParameters trained;
  if (trains_bias && !own_function) trained.add(*bias);
  if (trains_weight) trained.add(weight);
  if (trains_bias && own_function) trained.add(*bias);
  return on.record(
      std::move(y), trained,
      [this, own_function, trains_weight, trains_bias, node = x.node, saved_x = std::move(saved_x),
       saved_weight = std::move(saved_weight)](Tape& back, const Value& d_y) mutable {
        const Value kept = saved_weight.take(back);
        Value kept_x = saved_x.take(back);
        back.give(node, node == Value::kNoNode ? Value() : input_gradient(back, *this, d_y));
        if (trains_weight) {
          back.give(weight, weight_gradient(back, *this, d_y, kept_x),
                    own_function ? Memory::own : Memory::view);
        }
        kept_x = {};
        if (trains_bias) back.give(*bias, bias_gradient(back, *this, d_y), Memory::own);
      });
}

namespace {

Product product_of(const ModelNames& names, std::size_t module, const std::string& name,
                   bool takes_matrix) {
  Product layer{.module = module,
                .weight = names.tensor(name + ".weight"),
                .bias = names.find_tensor(name + ".bias"),
                .is_conv1d = names.class_of(module) == "Conv1D",
                .takes_matrix = takes_matrix};
  const auto& shape = names.shape(layer.weight);
  layer.in = shape.at(layer.is_conv1d ? 0 : 1);
  layer.out = shape.at(layer.is_conv1d ? 1 : 0);
  return layer;
}

// The places of lora.Linear's modules behind it, in the order of registration.
constexpr std::size_t kBaseLayer = 1;
constexpr std::size_t kDropout = 2;
constexpr std::size_t kA = 3;
constexpr std::size_t kB = 4;

}  // namespace

Linear::Linear(const ModelNames& names, const std::string& name, bool takes_matrix) {
  const std::size_t module = names.module(name);
  const bool is_adapted = names.lora().rank > 0 && names.find_module(name + ".lora_A.default");
  base_ = product_of(names, is_adapted ? module + kBaseLayer : module, name, takes_matrix);
  if (!is_adapted) return;
  adapter_ = Adapter{.module = module,
                     .scaling = names.lora().scaling,
                     .dropout = {.module = module + kDropout, .probability = names.lora().dropout},
                     .a = product_of(names, module + kA, name + ".lora_A.default", false),
                     .b = product_of(names, module + kB, name + ".lora_B.default", false)};
}

Value Linear::operator()(Tape& on, Value x) const {
  if (!adapter_) return base_(on, std::move(x));
  return run_module(on, adapter_->module, std::move(x), [&](const Value& in) {
    const Adapter& own = *adapter_;
    const Value y = base_(on, in);
    const std::uint64_t seed = seed_of(on.context().seed, own.module);
    // Each product goes as soon as the next has been computed, as Python's temporaries do.
    Value added = own.a(on, own.dropout(on, in, seed));
    added = own.b(on, std::move(added));
    added = scale(on, added, own.scaling);
    return add(on, y, added);
  });
}

}  // namespace dstune::nn
