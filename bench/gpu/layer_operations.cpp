#include "bench/gpu/layer_operations.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "core/base/text.hpp"
#include "core/device/operations/activations.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/norms.hpp"
#include "core/device/operations/softmax.hpp"

namespace dstune::bench {

namespace {

/// Where operands come from, and which sizes they have.
class Maker {
 public:
  Maker(Device& device, Arena& arena, const LayerRequest& request)
      : device_(device), arena_(arena), request_(request) {}

  std::int64_t size(std::size_t which) const {
    return static_cast<std::int64_t>(request_.sizes.at(which));
  }
  double number(std::size_t which) const { return request_.sizes.at(which); }
  std::int64_t elements() const { return size(0) * size(1); }

  Tensor tensor(std::int64_t numel) { return tensor(numel, request_.dtype); }
  Tensor tensor(std::int64_t numel, DType dtype) {
    return arena_.tensor(std::max<std::int64_t>(numel, 1), dtype);
  }
  Tensor bytes(std::int64_t numel) { return arena_.bytes(numel); }
  Matrix matrix(std::int64_t rows, std::int64_t cols) {
    return as_matrix(tensor(rows * cols), rows, cols);
  }
  Matrix matrix(std::int64_t rows, std::int64_t cols, DType dtype) {
    return as_matrix(tensor(rows * cols, dtype), rows, cols);
  }
  DType dtype() const { return request_.dtype; }
  Device& device() { return device_; }

  template <class Operation>
  std::function<void()> run(const Operation& op) {
    return [op, &device = device_] { device.run(op); };
  }
  template <class Forward, class Backward>
  LayerPasses passes(const Forward& forward, const Backward& backward) {
    return {run(forward), run(backward)};
  }

 private:
  Device& device_;
  Arena& arena_;
  const LayerRequest& request_;
};

LayerPasses rotate(Maker& make) {
  const std::int64_t rows = make.size(0);
  const std::int64_t cols = make.size(1) * make.size(2);
  Rotate op{.in = make.matrix(rows, cols),
            .heads = make.size(1),
            .head_size = make.size(2),
            .in_stride = make.size(2),
            .cos = make.matrix(rows, make.size(2) / 2),
            .sin = make.matrix(rows, make.size(2) / 2),
            .scratch = make.tensor(rotate_scratch(rows * cols)),
            .out = make.matrix(rows, cols)};
  Rotate inverse = op;
  inverse.inverse = true;
  return make.passes(op, inverse);
}

LayerPasses rms_norm(Maker& make) {
  const std::int64_t rows = make.size(0);
  const std::int64_t cols = make.size(1);
  const Matrix x = make.matrix(rows, cols);
  const bool is_fp32 = make.dtype() == DType::fp32;
  const RmsNormSaved saved{is_fp32 ? x : make.matrix(rows, cols, DType::fp32),
                           make.tensor(rows, DType::fp32), make.matrix(rows, cols)};
  const Tensor weight = make.tensor(cols);
  return make.passes(
      RmsNorm{.x = x,
              .weight = weight,
              .saved = saved,
              .scratch = make.tensor(rms_norm_scratch(make.dtype(), make.elements()), DType::fp32),
              .out = make.matrix(rows, cols)},
      RmsNormBackward{.d_out = make.matrix(rows, cols),
                      .weight = weight,
                      .saved = saved,
                      .scratch = make.tensor(
                          rms_norm_backward_scratch(make.dtype(), make.elements()), DType::fp32),
                      .d_x = make.matrix(rows, cols),
                      .d_weight = make.tensor(cols)});
}

LayerPasses layer_norm(Maker& make) {
  const std::int64_t rows = make.size(0);
  const std::int64_t cols = make.size(1);
  const Matrix x = make.matrix(rows, cols);
  const Matrix out = make.matrix(rows, cols);
  const Tensor gamma = make.tensor(cols);
  const LayerNormSaved saved{make.tensor(rows, DType::fp32), make.tensor(rows, DType::fp32)};
  return make.passes(
      LayerNorm{.x = x, .gamma = gamma, .beta = make.tensor(cols), .saved = saved, .out = out},
      LayerNormBackward{.d_out = out,
                        .x = x,
                        .gamma = gamma,
                        .saved = saved,
                        .d_x = make.matrix(rows, cols),
                        .d_gamma = make.tensor(cols),
                        .d_beta = make.tensor(cols)});
}

LayerPasses softmax(Maker& make) {
  const Matrix probs = make.matrix(make.size(0), make.size(1));
  return make.passes(Softmax{make.matrix(make.size(0), make.size(1)), probs},
                     SoftmaxBackward{make.matrix(make.size(0), make.size(1)), probs,
                                     make.matrix(make.size(0), make.size(1))});
}

LayerPasses glu(Maker& make) {
  const Matrix gate_up = make.matrix(make.size(0), 2 * make.size(1));
  const Tensor activated = make.tensor(make.elements());
  return make.passes(
      Glu{.gate_up = gate_up, .activated = activated, .product = make.tensor(make.elements())},
      GluBackward{.d_product = make.tensor(make.elements()),
                  .gate_up = gate_up,
                  .activated = activated,
                  .d_up = make.tensor(make.elements()),
                  .d_gate = make.tensor(make.elements())});
}

LayerPasses gelu_new(Maker& make) {
  const std::int64_t count = make.size(0);
  const Tensor x = make.tensor(count);
  const GeluSaved saved{make.tensor(count), make.tensor(count), make.tensor(count)};
  const Tensor out = make.tensor(count);
  return make.passes(
      GeluNew{.x = x, .saved = saved, .out = out},
      GeluNewBackward{.d_out = out, .x = x, .saved = saved, .d_x = make.tensor(count)});
}

LayerPasses gelu(Maker& make) {
  const Tensor x = make.tensor(make.size(0));
  const Tensor out = make.tensor(make.size(0));
  return make.passes(
      Activate{.kind = Activation::gelu, .x = x, .out = out},
      ActivateBackward{
          .kind = Activation::gelu, .d_out = out, .saved = x, .d_x = make.tensor(make.size(0))});
}

LayerPasses dropout(Maker& make) {
  constexpr double kProbability = 0.1;
  const Tensor in = make.tensor(make.size(0));
  const Tensor out = make.tensor(make.size(0));
  const Tensor mask = make.bytes(make.size(0));
  return make.passes(
      Dropout{.in = in, .probability = kProbability, .seed = 1, .mask = mask, .out = out},
      DropoutBackward{.d_out = out, .probability = kProbability, .mask = mask, .d_in = in});
}

LayerPasses attention(Maker& make) {
  const AttentionShape shape{.batch = make.size(0),
                             .sequence = make.size(1),
                             .heads = make.size(2),
                             .kv_heads = make.size(3),
                             .head_size = make.size(4),
                             .dropout = make.number(5),
                             .seed = 1};
  const std::int64_t width = shape.heads * shape.head_size;
  const std::int64_t kv_width = shape.kv_heads * shape.head_size;
  const auto qkv = [&](std::int64_t columns, std::int64_t heads) {
    return heads_in(make.matrix(shape.rows(), columns), 0, heads, shape.head_size);
  };
  const Heads q = qkv(width, shape.heads);
  const Heads k = qkv(kv_width, shape.kv_heads);
  const Heads v = qkv(kv_width, shape.kv_heads);
  const Matrix out = make.matrix(shape.rows(), width);
  const Tensor lse = make.tensor(shape.batch * shape.heads * shape.sequence, DType::fp32);
  const Tensor workspace = make.tensor(make.device().attention_workspace(shape), DType::fp32);
  return make.passes(
      Attention{
          .shape = shape, .q = q, .k = k, .v = v, .lse = lse, .workspace = workspace, .out = out},
      AttentionBackward{.shape = shape,
                        .d_out = make.matrix(shape.rows(), width),
                        .q = q,
                        .k = k,
                        .v = v,
                        .out = out,
                        .lse = lse,
                        .workspace = workspace,
                        .d_q = qkv(width, shape.heads),
                        .d_k = qkv(kv_width, shape.kv_heads),
                        .d_v = qkv(kv_width, shape.kv_heads)});
}

LayerPasses bias(Maker& make) {
  return {
      make.run(BiasGradient{make.matrix(make.size(0), make.size(1)), make.tensor(make.size(1))}),
      {}};
}

LayerPasses add(Maker& make) {
  return {make.run(Add{make.tensor(make.size(0)), make.tensor(make.size(0))}), {}};
}

LayerPasses multiply(Maker& make) {
  return {make.run(Multiply{make.tensor(make.size(0)), make.tensor(make.size(0)),
                            make.tensor(make.size(0))}),
          {}};
}

struct Entry {
  std::size_t sizes;
  LayerPasses (*make)(Maker&);
};

const std::map<std::string, Entry> kEntries = {
    {"rotate", {3, rotate}},   {"rms_norm", {2, rms_norm}}, {"layer_norm", {2, layer_norm}},
    {"softmax", {2, softmax}}, {"glu", {2, glu}},           {"gelu_new", {1, gelu_new}},
    {"gelu", {1, gelu}},       {"dropout", {1, dropout}},   {"attention", {6, attention}},
    {"bias", {2, bias}},       {"add", {1, add}},           {"multiply", {1, multiply}},
};

}  // namespace

LayerPasses make_layer(Device& device, Arena& arena, const LayerRequest& request) {
  const auto found = kEntries.find(request.name);
  if (found == kEntries.end()) throw std::invalid_argument(concat("no operation: ", request.name));
  if (request.sizes.size() != found->second.sizes) {
    throw std::invalid_argument(concat(request.name, " takes ", found->second.sizes, " sizes"));
  }
  Maker maker(device, arena, request);
  return found->second.make(maker);
}

}  // namespace dstune::bench
