#include "core/train/layers/score_mask.hpp"

#include <limits>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/rows.hpp"

namespace dstune::layers {

namespace {

/// torch.finfo(dtype).min
double lowest_of(DType dtype) {
  if (dtype == DType::fp16) return -65504;
  return dtype == DType::bf16 ? -3.38953139e38 : std::numeric_limits<float>::lowest();
}

// Padding's columns of a mask without causal, which hides them from whom they could matter to.
void hide_padding(const Workspace& work, const AttentionShape& shape, const Buffer& mask) {
  const std::int64_t s = shape.sequence;
  const Buffer buffer = make_buffer(*work.device, MemoryCategory::temporaries, s * s, work.dtype);
  const Tensor lowest = buffer.tensor(work.dtype);
  work.device->run(FillConstant{lowest, lowest_of(work.dtype)});
  const Tensor all = mask.tensor(work.dtype);
  for (const TokenSpan& padding : padding_of(work)) {
    const std::int64_t first = padding.begin / s * s * s + padding.begin % s;
    const Tensor columns = all.slice(first, all.numel - first);
    work.device->run(CopyRows{as_matrix(lowest.slice(0, s * padding.length), s, padding.length),
                              {columns.data, s, padding.length, work.dtype, s}});
  }
}

}  // namespace

bool hides_keys(const Workspace& work, const AttentionShape& shape) {
  return shape.causal || (shape.window > 0 && shape.window < shape.sequence) || work.is_padded();
}

Buffer score_mask(const Workspace& work, const AttentionShape& shape) {
  Buffer mask = make_buffer(*work.device, MemoryCategory::activations,
                            shape.rows() * shape.sequence, work.dtype);
  work.device->run(FillMask{shape, mask.tensor(work.dtype)});
  if (work.is_padded() && !shape.causal) hide_padding(work, shape, mask);
  return mask;
}

}  // namespace dstune::layers
