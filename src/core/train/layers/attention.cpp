#include "core/train/layers/attention.hpp"

namespace dstune::layers {

namespace {

Buffer scratch_of(const Workspace& work, const AttentionShape& shape) {
  return make_buffer(*work.device, MemoryCategory::temporaries,
                     work.device->attention_workspace(shape), DType::fp32);
}

}  // namespace

void AttentionLayer::forward(const Workspace& work, const AttentionShape& shape, const Heads& q,
                             const Heads& k, const Heads& v) {
  const std::int64_t width = shape.heads * shape.head_size;
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

void AttentionLayer::backward(const Workspace& work, const AttentionShape& shape,
                              const Buffer& d_out, const Heads& q, const Heads& k, const Heads& v,
                              const Heads& d_q, const Heads& d_k, const Heads& d_v) {
  const std::int64_t width = shape.heads * shape.head_size;
  {
    const Buffer scratch = scratch_of(work, shape);
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
  out.reset();
  lse.reset();
}

}  // namespace dstune::layers
