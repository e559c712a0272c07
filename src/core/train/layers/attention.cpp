#include "core/train/layers/attention.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/device/operations/attention_mask.hpp"
#include "core/device/operations/stack_heads.hpp"

namespace dstune::layers {

namespace {

/// One of each call.
struct Calls {
  std::vector<AttentionShape> shapes;
  std::vector<TokenSpan> spans;  ///< whose rows it has; empty: there is one, of all rows

  Calls(const Workspace& work, const AttentionShape& shape);

  std::size_t count() const { return shapes.size(); }
  /// The `call`-th's rows.
  Matrix part(std::size_t call, Matrix matrix) const {
    if (spans.empty()) return matrix;
    const auto row = matrix.stride * static_cast<std::int64_t>(size_of(matrix.dtype));
    matrix.data = static_cast<std::byte*>(matrix.data) + spans[call].begin * row;
    matrix.rows = spans[call].length;
    return matrix;
  }
  Heads part(std::size_t call, const Heads& heads) const {
    return {part(call, heads.matrix), heads.stride};
  }
  Tensor lse(std::size_t call, const Buffer& buffer) const {
    const Tensor all = buffer.tensor(DType::fp32);
    if (spans.empty()) return all;
    const std::int64_t heads = shapes[call].heads;
    return all.slice(spans[call].begin * heads, spans[call].length * heads);
  }
};

// Without causal, padding would be seen. What it computes among itself is nobody's.
Calls::Calls(const Workspace& work, const AttentionShape& shape) {
  const bool hides_padding = work.is_padded() && !shape.causal;
  if (work.is_packed || hides_padding) spans = work.sequences;
  if (hides_padding) {
    const std::vector<TokenSpan> padding = padding_of(work);
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

Buffer scratch_of(const Workspace& work, const Calls& calls) {
  std::int64_t most = 0;
  for (const AttentionShape& shape : calls.shapes) {
    most = std::max(most, work.device->attention_workspace(shape));
  }
  return make_buffer(*work.device, MemoryCategory::temporaries, most, DType::fp32);
}

// transformers makes a mask for sdpa where is_causal does not say it all: for a window that the
// sequence reaches, and for padding (_ignore_causal_mask_sdpa). The flash_attn package takes
// windows as they are. What padding sees is nobody's: behind a sequence, causal hides it from all
// others.
bool has_mask(const Workspace& work, const AttentionShape& shape) {
  const bool has_window = shape.window > 0 && shape.window <= shape.sequence;
  return work.attention == AttentionKind::sdpa && (has_window || work.is_padded());
}

Buffer repeated(const Workspace& work, const AttentionShape& shape, const Heads& in) {
  Buffer out = work.activation(shape.heads * shape.head_size);
  const Matrix matrix =
      as_matrix(out.tensor(work.dtype), shape.rows() * shape.heads, shape.head_size);
  work.device->run(StackHeads{.shape = shape, .in = in, .heads = shape.kv_heads, .out = matrix});
  out.reset();
  return work.activation((shape.heads - shape.kv_heads) * shape.head_size);
}

// With rows of whole packs, as the memory-efficient kernel reads it (pad_bias).
Buffer bias_of(const Workspace& work, const AttentionShape& shape) {
  constexpr std::int64_t kPack = 8;
  Buffer bias = work.activation((shape.sequence + kPack - 1) / kPack * kPack);
  const Tensor all = bias.tensor(work.dtype);
  work.device->run(FillMask{shape, all.slice(0, shape.rows() * shape.sequence)});
  return bias;
}

}  // namespace

void AttentionLayer::forward(const Workspace& work, const AttentionShape& shape, const Heads& q,
                             const Heads& k, const Heads& v, const Buffer* mask) {
  if (is_eager(work, shape)) {
    out = eager.forward(work, shape, q, k, v, mask);
    return;
  }
  const std::int64_t width = shape.heads * shape.head_size;
  if (has_mask(work, shape)) {
    if (shape.heads != shape.kv_heads && shape.kv_heads > 1) {
      repeated_k = repeated(work, shape, k);
      repeated_v = repeated(work, shape, v);
    }
    bias = bias_of(work, shape);
  }
  out = work.activation(width);
  lse = work.activation_fp32(shape.heads);
  const Calls calls(work, shape);
  const Buffer scratch = scratch_of(work, calls);
  for (std::size_t call = 0; call < calls.count(); ++call) {
    work.device->run(Attention{.shape = calls.shapes[call],
                               .q = calls.part(call, q),
                               .k = calls.part(call, k),
                               .v = calls.part(call, v),
                               .lse = calls.lse(call, lse),
                               .workspace = scratch.tensor(DType::fp32),
                               .out = calls.part(call, work.matrix(out, width))});
  }
}

void AttentionLayer::begin_backward(const Workspace& work, const AttentionShape& shape,
                                    const Heads& q, const Heads& k, const Heads& v, Buffer& d_out) {
  if (!is_eager(work, shape)) return;
  out.reset();
  eager.backward(work, shape, q, k, v, d_out, &d_out);
}

void AttentionLayer::backward(const Workspace& work, const AttentionShape& shape,
                              const Buffer& d_out, const Heads& q, const Heads& k, const Heads& v,
                              const Heads& d_q, const Heads& d_k, const Heads& d_v) {
  if (is_eager(work, shape)) {
    out.reset();
    if (!eager.has_gradients()) eager.backward(work, shape, q, k, v, d_out, nullptr);
    return eager.hand_over(work, shape, d_q, d_k, d_v);
  }
  const std::int64_t width = shape.heads * shape.head_size;
  {
    const Calls calls(work, shape);
    const Buffer scratch = scratch_of(work, calls);
    // The gradients of what was repeated, before they are summed.
    const Buffer d_repeated = repeated_k ? work.activation(2 * width) : Buffer();
    for (std::size_t call = 0; call < calls.count(); ++call) {
      work.device->run(AttentionBackward{.shape = calls.shapes[call],
                                         .d_out = calls.part(call, work.matrix(d_out, width)),
                                         .q = calls.part(call, q),
                                         .k = calls.part(call, k),
                                         .v = calls.part(call, v),
                                         .out = calls.part(call, work.matrix(out, width)),
                                         .lse = calls.lse(call, lse),
                                         .workspace = scratch.tensor(DType::fp32),
                                         .d_q = calls.part(call, d_q),
                                         .d_k = calls.part(call, d_k),
                                         .d_v = calls.part(call, d_v)});
    }
  }
  for (Buffer* used : {&out, &lse, &repeated_k, &repeated_v, &bias}) used->reset();
}

}  // namespace dstune::layers
