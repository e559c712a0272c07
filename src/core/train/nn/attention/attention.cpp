#include "core/train/nn/attention/attention.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/nn/attention/eager_attention.hpp"

namespace dstune::nn {
namespace {

/// The calls of the kernel: one for all rows, or one for the rows of each of `spans`.
struct Calls {
  std::vector<AttentionShape> shapes;
  std::vector<TokenSpan> spans;

  Calls(const BatchContext& context, const AttentionShape& shape);

  std::size_t count() const { return shapes.size(); }
  Matrix part(std::size_t call, Matrix matrix) const {
    if (spans.empty()) return matrix;
    const auto row = matrix.stride * static_cast<std::int64_t>(size_of(matrix.dtype));
    matrix.data = static_cast<std::byte*>(matrix.data) + spans[call].begin * row;
    matrix.rows = spans[call].length;
    return matrix;
  }
  Heads heads(std::size_t call, const Value& rows, std::int64_t count) const {
    const Heads all = heads_of(rows, count);
    return {part(call, all.matrix), all.stride};
  }
  Tensor lse(std::size_t call, const Value& all) const {
    if (spans.empty()) return all.tensor();
    const std::int64_t heads = shapes[call].heads;
    return all.tensor().slice(spans[call].begin * heads, spans[call].length * heads);
  }
};

// Without a causal mask queries would see padding, so that each sequence and each padding gets a
// call of its own. What padding computes among itself is not used.
Calls::Calls(const BatchContext& context, const AttentionShape& shape) {
  const bool hides_padding = context.is_padded() && !shape.causal;
  if (context.is_packed || hides_padding) spans = context.sequences;
  if (hides_padding) {
    const std::vector<TokenSpan> padding = context.padding();
    spans.insert(spans.end(), padding.begin(), padding.end());
  }
  if (spans.empty()) shapes = {shape};
  for (const TokenSpan& span : spans) {
    shapes.push_back(shape);
    shapes.back().batch = 1;
    shapes.back().sequence = span.length;
    shapes.back().seed = seed_of(shape.seed, static_cast<std::uint64_t>(span.begin));
  }
}

Buffer scratch_of(Device& device, const Calls& calls) {
  std::int64_t most = 0;
  for (const AttentionShape& shape : calls.shapes) {
    most = std::max(most, device.attention_workspace(shape));
  }
  return make_buffer(device, MemoryCategory::temporaries, most, DType::fp32);
}

// transformers makes a mask for sdpa where is_causal does not say it all: for a window that the
// sequence reaches, and for padding (_ignore_causal_mask_sdpa). The flash_attn package takes
// windows as they are. What padding itself sees does not matter: it is behind its sequence, and a
// causal mask hides it from all other tokens.
bool has_mask(const BatchContext& context, const AttentionShape& shape) {
  const bool has_window = shape.window > 0 && shape.window <= shape.sequence;
  return context.attention == AttentionKind::sdpa && (has_window || context.is_padded());
}

// Memory for what repeat_kv()'s copy of `in` has beyond the size of `in`. PyTorch frees `in` and
// keeps the copy; the node here keeps `in` and this.
Value repeated(const Tape& on, const AttentionShape& shape, const Value& in) {
  const DType dtype = on.context().dtype;
  {
    const Value whole = new_value(on.device(), dtype, shape.rows() * shape.heads, shape.head_size);
    on.run(StackHeads{.shape = shape,
                      .in = {in.matrix, shape.head_size},
                      .heads = shape.kv_heads,
                      .out = whole.rows()});
  }
  return new_value(on.device(), dtype, shape.rows(),
                   (shape.heads - shape.kv_heads) * shape.head_size);
}

// The mask as a bias whose rows are whole packs, as the memory-efficient kernel reads it
// (pad_bias).
Value bias_of(const Tape& on, const AttentionShape& shape) {
  constexpr std::int64_t kPack = 8;
  const std::int64_t columns = (shape.sequence + kPack - 1) / kPack * kPack;
  Value bias = new_value(on.device(), on.context().dtype, shape.rows(), columns);
  on.run(FillMask{shape, bias.tensor().slice(0, shape.rows() * shape.sequence)});
  return bias;
}

// A dense copy of v: PyTorch keeps the repeated values, and with them nothing of the tensor that v
// was a part of.
Value dense(const Tape& on, const Value& v) {
  if (v.is_dense()) return v;
  Value own = new_value(on.device(), v.matrix.dtype, v.matrix.rows, v.matrix.cols);
  on.run(CopyRows{v.matrix, own.matrix});
  return own;
}

// PyTorch makes one call of all.
int operators_of(std::size_t call, int operators) { return call == 0 ? operators : 0; }

/// The backward of the fused kernel's node.
struct FusedBackward {
  AttentionShape shape;
  Calls calls;
  std::array<std::size_t, 3> nodes;  ///< the nodes of q, k and v
  Saved q, k, v, bias, repeated_k, repeated_v, out, lse;

  void operator()(Tape& back, const Value& d);
};

void FusedBackward::operator()(Tape& back, const Value& d) {
  const Value own_q = q.take(back);
  const Value own_k = k.take(back);
  const Value own_v = v.take(back);
  const Value own_bias = bias.take(back);
  const Value own_repeated[] = {repeated_k.take(back), repeated_v.take(back)};
  const Value own_out = out.take(back);
  const Value own_lse = lse.take(back);
  const auto gradient = [&](std::int64_t heads) {
    return new_value(back.device(), d.matrix.dtype, d.matrix.rows, heads * shape.head_size);
  };
  Value d_q = gradient(shape.heads);
  Value d_k = gradient(shape.kv_heads);
  Value d_v = gradient(shape.kv_heads);
  const Buffer scratch = scratch_of(back.device(), calls);
  // The gradients by the repeated keys and values, before they are summed.
  const Value d_repeated = own_repeated[0] ? gradient(2 * shape.heads) : Value();
  for (std::size_t call = 0; call < calls.count(); ++call) {
    back.run(AttentionBackward{.shape = calls.shapes[call],
                               .d_out = calls.part(call, d.matrix),
                               .q = calls.heads(call, own_q, shape.heads),
                               .k = calls.heads(call, own_k, shape.kv_heads),
                               .v = calls.heads(call, own_v, shape.kv_heads),
                               .out = calls.part(call, own_out.matrix),
                               .lse = calls.lse(call, own_lse),
                               .workspace = scratch.tensor(DType::fp32),
                               .d_q = calls.heads(call, d_q, shape.heads),
                               .d_k = calls.heads(call, d_k, shape.kv_heads),
                               .d_v = calls.heads(call, d_v, shape.kv_heads)},
             operators_of(call, kOperatorCalls<AttentionBackward>));
  }
  if (own_repeated[0]) back.count_operators(kRepeatBackwardCalls);
  back.give(nodes[0], std::move(d_q));
  back.give(nodes[1], std::move(d_k));
  back.give(nodes[2], std::move(d_v));
}

Value attend_fused(Tape& on, const AttentionShape& shape, const Value& q, const Value& k,
                   const Value& v) {
  const BatchContext& context = on.context();
  const std::int64_t width = shape.heads * shape.head_size;
  Value bias;
  Value repeated_k;
  Value repeated_v;
  if (has_mask(context, shape)) {
    if (shape.heads != shape.kv_heads && shape.kv_heads > 1) {  // one repeated head is a view
      repeated_k = repeated(on, shape, k);
      repeated_v = repeated(on, shape, v);
    } else if (shape.heads != shape.kv_heads) {
      on.count_operators(2 * kOperatorCalls<StackHeads>);
    }
    bias = bias_of(on, shape);
  }
  Value out = new_value(on.device(), context.dtype, context.rows(), width);
  const Value lse = new_value(on.device(), DType::fp32, context.rows(), shape.heads);
  const Calls calls(context, shape);
  {
    const Buffer scratch = scratch_of(on.device(), calls);
    for (std::size_t call = 0; call < calls.count(); ++call) {
      on.run(Attention{.shape = calls.shapes[call],
                       .q = calls.heads(call, q, shape.heads),
                       .k = calls.heads(call, k, shape.kv_heads),
                       .v = calls.heads(call, v, shape.kv_heads),
                       .lse = calls.lse(call, lse),
                       .workspace = scratch.tensor(DType::fp32),
                       .out = calls.part(call, out.matrix)},
             operators_of(call, kOperatorCalls<Attention>));
    }
  }
  if (!on.records(q.needs_gradient() || k.needs_gradient() || v.needs_gradient())) return out;
  FusedBackward backward{.shape = shape,
                         .calls = calls,
                         .nodes = {q.node, k.node, v.node},
                         .q = on.save(q),
                         .k = on.save(k),
                         .v = on.save(repeated_v ? dense(on, v) : v),
                         .bias = on.save(bias),
                         .repeated_k = on.save(repeated_k),
                         .repeated_v = on.save(repeated_v),
                         .out = on.save(out),
                         .lse = on.save(lse)};
  return on.record(std::move(out), std::move(backward));
}

}  // namespace

bool is_eager(const BatchContext& context, const AttentionShape& shape) {
  return context.attention == AttentionKind::eager ||
         context.attention == AttentionKind::eager_torch_1_10 ||
         (context.attention == AttentionKind::sdpa && shape.softcap > 0);
}

Heads heads_of(const Value& value, std::int64_t count) {
  if (value.step == 0) return {value.matrix, value.matrix.cols / count};
  return heads_in(value.matrix, 0, count, value.matrix.cols, value.step);
}

Value attend(Tape& on, SoftmaxType softmax, const AttentionShape& shape, const Value& q,
             const Value& k, const Value& v, const Value& mask) {
  return is_eager(on.context(), shape) ? attend_eagerly(on, softmax, shape, q, k, v, mask)
                                       : attend_fused(on, shape, q, k, v);
}

}  // namespace dstune::nn
