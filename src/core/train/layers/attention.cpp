#include "core/train/layers/attention.hpp"

#include "core/device/operations/attention_mask.hpp"
#include "core/device/operations/stack_heads.hpp"

namespace dstune::layers {

namespace {

Buffer scratch_of(const Workspace& work, const AttentionShape& shape) {
  return make_buffer(*work.device, MemoryCategory::temporaries,
                     work.device->attention_workspace(shape), DType::fp32);
}

// transformers makes a mask for sdpa where is_causal does not say it all: for a window that the
// sequence reaches (_ignore_causal_mask_sdpa). The flash_attn package takes windows as they are.
bool has_mask(const Workspace& work, const AttentionShape& shape) {
  return work.attention == AttentionKind::sdpa && shape.window > 0 &&
         shape.window <= shape.sequence;
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
  const Buffer scratch = scratch_of(work, shape);
  work.device->run(Attention{.shape = shape,
                             .q = q,
                             .k = k,
                             .v = v,
                             .lse = lse.tensor(DType::fp32),
                             .workspace = scratch.tensor(DType::fp32),
                             .out = work.matrix(out, width)});
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
    const Buffer scratch = scratch_of(work, shape);
    // The gradients of what was repeated, before they are summed.
    const Buffer d_repeated = repeated_k ? work.activation(2 * width) : Buffer();
    work.device->run(AttentionBackward{.shape = shape,
                                       .d_out = work.matrix(d_out, width),
                                       .q = q,
                                       .k = k,
                                       .v = v,
                                       .out = work.matrix(out, width),
                                       .lse = lse.tensor(DType::fp32),
                                       .workspace = scratch.tensor(DType::fp32),
                                       .d_q = d_q,
                                       .d_k = d_k,
                                       .d_v = d_v});
  }
  for (Buffer* used : {&out, &lse, &repeated_k, &repeated_v, &bias}) used->reset();
}

}  // namespace dstune::layers
