// What cuDNN has no plan for is left to our own kernels: that is no error.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "core/base/text.hpp"
#include "kernels/cuda/attention/cudnn_frontend_graph.hpp"
#include "kernels/cuda/attention/fused.hpp"
#include "kernels/cuda/attention/philox.hpp"
#include "kernels/cuda/attention/plan_cache.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/libraries/cudnn.hpp"

namespace dstune::cuda {

namespace {

FusedHeads fused_heads(const Heads& heads, std::int64_t count) {
  return {count, heads.matrix.stride, heads.stride};
}

template <class Operation>
FusedShape forward_of(const Operation& op) {
  const AttentionShape& shape = op.shape;
  return {.batch = shape.batch,
          .sequence = shape.sequence,
          .head_size = shape.head_size,
          .causal = shape.causal,
          .window = shape.window < shape.sequence ? shape.window : 0,
          .scale = shape.score_scale(),
          .dropout = shape.dropout,
          .dtype = op.out.dtype,
          .q = fused_heads(op.q, shape.heads),
          .k = fused_heads(op.k, shape.kv_heads),
          .v = fused_heads(op.v, shape.kv_heads),
          .out = {shape.heads, op.out.stride, shape.head_size}};
}

FusedShape backward_of(const AttentionBackward& op) {
  FusedShape backward = forward_of(op);
  backward.backward = true;
  backward.d_q = fused_heads(op.d_q, op.shape.heads);
  backward.d_k = fused_heads(op.d_k, op.shape.kv_heads);
  backward.d_v = fused_heads(op.d_v, op.shape.kv_heads);
  return backward;
}

/// The plans of a thread, which drives one GPU. They live as long as the process, since CUDA may be
/// gone when what is static ends.
class Plans {
 public:
  static Plans& of_this_thread() {
    static thread_local auto* const plans = new Plans;
    return *plans;
  }

  /// nullptr if cuDNN has none.
  const FusedPlan* find(const FusedShape& shape) {
    return plans_.find(shape, [&] { return std::make_unique<FusedPlan>(handle(), shape); });
  }

  /// False if there is no plan, or too little workspace.
  bool run(const FusedShape& shape, const std::unordered_map<std::int64_t, void*>& tensors,
           const Tensor& workspace, cudaStream_t stream) {
    const FusedPlan* const plan = find(shape);
    if (plan == nullptr) return false;
    if (static_cast<Bytes>(plan->workspace()) > workspace.size()) {
      plans_.say(concat("its workspace of ", plan->workspace(), " bytes is larger than the ",
                        workspace.size(), " that were counted"));
      return false;
    }
    const cudnnStatus_t status = cudnn().SetStream(handle(), stream);
    if (status != CUDNN_STATUS_SUCCESS) {
      throw CudaError(concat("cudnnSetStream: ", cudnn().GetErrorString(status)));
    }
    plan->run(handle(), tensors, workspace.data);
    return true;
  }

 private:
  cudnnHandle_t handle() {
    if (handle_ != nullptr) return handle_;
    const cudnnStatus_t status = cudnn().Create(&handle_);
    if (status == CUDNN_STATUS_SUCCESS) return handle_;
    handle_ = nullptr;
    const auto reason = concat("cudnnCreate: ", cudnn().GetErrorString(status));
    check_device_after(reason);
    throw NoPlanError(reason);
  }

  cudnnHandle_t handle_ = nullptr;
  PlanCache<FusedShape, FusedPlan> plans_;
};

/// Heads that touch, of q, k and v that touch as in one product's result; the data is nobody's.
Attention dense(const AttentionShape& shape, DType dtype) {
  const std::int64_t width = shape.heads * shape.head_size;
  const std::int64_t kv_width = shape.kv_heads * shape.head_size;
  const std::int64_t stride = width + 2 * kv_width;
  const Heads q{{nullptr, shape.rows(), width, dtype, stride}, shape.head_size};
  const Heads k{{nullptr, shape.rows(), kv_width, dtype, stride}, shape.head_size};
  return {.shape = shape,
          .q = q,
          .k = k,
          .v = k,
          .lse = {},
          .workspace = {},
          .out = {nullptr, shape.rows(), width, dtype, width}};
}

/// Of both passes over dense operands; null where there is none.
std::array<const FusedPlan*, 2> dense_plans(const AttentionShape& shape, DType dtype) {
  const Attention op = dense(shape, dtype);
  const AttentionBackward backward{.shape = shape,
                                   .d_out = op.out,
                                   .q = op.q,
                                   .k = op.k,
                                   .v = op.v,
                                   .out = op.out,
                                   .lse = {},
                                   .workspace = {},
                                   .d_q = op.q,
                                   .d_k = op.k,
                                   .d_v = op.v};
  Plans& plans = Plans::of_this_thread();
  return {plans.find(forward_of(op)), plans.find(backward_of(backward))};
}

/// Whether cuDNN computes both passes, and chooses what is dropped: by the plan of the operation's
/// own forward, whichever pass asks, and that of a dense backward. Else our own kernels compute
/// both, since they drop other probabilities.
template <class Operation>
bool drops_by_cudnn(const Operation& op) {
  const FusedPlan* const forward = Plans::of_this_thread().find(forward_of(op));
  if (forward == nullptr || static_cast<Bytes>(forward->workspace()) > op.workspace.size()) {
    return false;
  }
  return dense_plans(op.shape, op.out.dtype)[1] != nullptr;
}

void set_philox(const AttentionShape& shape, std::int64_t* philox, cudaStream_t stream) {
  if (shape.dropout > 0) queue_philox(shape.seed, philox, stream);
}

}  // namespace

std::string_view why_never_fused() { return {}; }

bool fused_attention(const Attention& op, std::int64_t* philox, cudaStream_t stream) {
  if (!is_cudnns(op.shape, op.out.dtype)) return false;
  if (op.shape.dropout > 0 && !drops_by_cudnn(op)) return false;
  set_philox(op.shape, philox, stream);
  return Plans::of_this_thread().run(forward_of(op),
                                     {{kQ, op.q.matrix.data},
                                      {kK, op.k.matrix.data},
                                      {kV, op.v.matrix.data},
                                      {kOut, op.out.data},
                                      {kStats, op.lse.data},
                                      {kSeed, philox},
                                      {kOffset, philox + 1}},
                                     op.workspace, stream);
}

bool fused_attention_backward(const AttentionBackward& op, std::int64_t* philox,
                              cudaStream_t stream) {
  if (!is_cudnns(op.shape, op.out.dtype)) return false;
  const bool drops = op.shape.dropout > 0;
  if (drops && !drops_by_cudnn(op)) return false;
  set_philox(op.shape, philox, stream);
  const bool has_run =
      op.d_out.stride == op.out.stride && Plans::of_this_thread().run(backward_of(op),
                                                                      {{kQ, op.q.matrix.data},
                                                                       {kK, op.k.matrix.data},
                                                                       {kV, op.v.matrix.data},
                                                                       {kOut, op.out.data},
                                                                       {kStats, op.lse.data},
                                                                       {kDOut, op.d_out.data},
                                                                       {kDQ, op.d_q.matrix.data},
                                                                       {kDK, op.d_k.matrix.data},
                                                                       {kDV, op.d_v.matrix.data},
                                                                       {kSeed, philox},
                                                                       {kOffset, philox + 1}},
                                                                      op.workspace, stream);
  if (drops && !has_run) {
    throw CudaError(
        "cuDNN dropped probabilities in attention's forward and has no plan for this "
        "backward");
  }
  return has_run;
}

// Rows that are not as dense need as much: the workspace holds sums of rows and tiles, whatever
// lies between them. So do both 16-bit types.
std::int64_t fused_attention_workspace(const AttentionShape& shape) {
  constexpr DType kDType = DType::bf16;
  if (!is_cudnns(shape, kDType) || !cudnn_library().problem.empty()) return 0;
  std::int64_t bytes = 0;
  for (const FusedPlan* const plan : dense_plans(shape, kDType)) {
    if (plan != nullptr) bytes = std::max(bytes, plan->workspace());
  }
  return (bytes + static_cast<std::int64_t>(sizeof(float)) - 1) /
         static_cast<std::int64_t>(sizeof(float));
}

}  // namespace dstune::cuda
