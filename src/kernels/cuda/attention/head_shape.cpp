#include "kernels/cuda/attention/head_shape.hpp"

#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

HeadShape head_shape_of(const AttentionShape& shape) {
  HeadShape heads;
  heads.sequence = shape.sequence;
  heads.heads = shape.heads;
  heads.count = shape.batch * shape.heads;
  heads.kv_count = shape.batch * shape.kv_heads;
  heads.served = shape.heads / shape.kv_heads;
  heads.back = shape.back();
  heads.ahead = shape.ahead();
  heads.size = static_cast<int>(shape.head_size);
  heads.scale = static_cast<float>(shape.score_scale());
  heads.softcap = static_cast<float>(shape.softcap);
  heads.keep_factor = static_cast<float>(1 / (1 - shape.dropout));
  heads.threshold = score_threshold(shape.dropout);
  heads.seed = shape.seed;
  return heads;
}

}  // namespace dstune::cuda
