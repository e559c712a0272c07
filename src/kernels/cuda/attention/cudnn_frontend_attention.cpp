// What cuDNN has no plan for is left to our own kernels: that is no error.
#include <algorithm>
#include <cstddef>
#include <memory>

#include "core/base/text.hpp"
#include "kernels/cuda/attention/cudnn_frontend_graph.hpp"
#include "kernels/cuda/attention/fused.hpp"
#include "kernels/cuda/attention/plan_cache.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/libraries/cudnn.hpp"

namespace dstune::cuda {

namespace {

constexpr std::int64_t kMostHeadSize = 128;
constexpr std::int64_t kHeadSizes = 8;  // a multiple of it

bool is_possible(const AttentionShape& shape, DType dtype) {
  return dtype != DType::fp32 && shape.dropout == 0 && shape.head_size <= kMostHeadSize &&
         shape.head_size % kHeadSizes == 0 && shape.batch * shape.sequence > 0;
}

FusedShape forward_of(const AttentionShape& shape, DType dtype, std::int64_t qkv_stride,
                      std::int64_t out_stride) {
  return {shape.batch, shape.sequence, shape.heads, shape.head_size,
          dtype,       qkv_stride,     out_stride,  0};
}

FusedShape backward_of(const AttentionShape& shape, DType dtype, std::int64_t qkv_stride,
                       std::int64_t out_stride, std::int64_t d_qkv_stride) {
  FusedShape backward = forward_of(shape, dtype, qkv_stride, out_stride);
  backward.d_qkv_stride = d_qkv_stride;
  return backward;
}

/// Of a thread, which drives one GPU; it lives as long as the process, since CUDA may be gone when
/// what is static ends.
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

/// Part 0, 1 or 2 of a matrix (M, 3h): q, k or v.
void* part_of(const Matrix& matrix, std::int64_t part) {
  return static_cast<std::byte*>(matrix.data) +
         part * (matrix.cols / 3) * static_cast<std::int64_t>(size_of(matrix.dtype));
}

}  // namespace

bool fused_attention(const Attention& op, cudaStream_t stream) {
  if (!is_possible(op.shape, op.qkv.dtype)) return false;
  return Plans::of_this_thread().run(
      forward_of(op.shape, op.qkv.dtype, op.qkv.stride, op.out.stride),
      {{kQ, part_of(op.qkv, 0)},
       {kK, part_of(op.qkv, 1)},
       {kV, part_of(op.qkv, 2)},
       {kOut, op.out.data},
       {kStats, op.lse.data}},
      op.workspace, stream);
}

bool fused_attention_backward(const AttentionBackward& op, cudaStream_t stream) {
  if (!is_possible(op.shape, op.qkv.dtype) || op.d_out.stride != op.out.stride) return false;
  return Plans::of_this_thread().run(
      backward_of(op.shape, op.qkv.dtype, op.qkv.stride, op.out.stride, op.d_qkv.stride),
      {{kQ, part_of(op.qkv, 0)},
       {kK, part_of(op.qkv, 1)},
       {kV, part_of(op.qkv, 2)},
       {kOut, op.out.data},
       {kStats, op.lse.data},
       {kDOut, op.d_out.data},
       {kDQ, part_of(op.d_qkv, 0)},
       {kDK, part_of(op.d_qkv, 1)},
       {kDV, part_of(op.d_qkv, 2)}},
      op.workspace, stream);
}

// The rows of a step have nothing between them; both 16-bit types need as much.
std::int64_t fused_attention_workspace(const AttentionShape& shape) {
  constexpr DType kDType = DType::bf16;
  if (!is_possible(shape, kDType) || !cudnn_library().problem.empty()) return 0;
  const std::int64_t width = shape.heads * shape.head_size;
  std::int64_t bytes = 0;
  for (const FusedShape& pass : {forward_of(shape, kDType, 3 * width, width),
                                 backward_of(shape, kDType, 3 * width, width, 3 * width)}) {
    const FusedPlan* const plan = Plans::of_this_thread().find(pass);
    if (plan != nullptr) bytes = std::max(bytes, plan->workspace());
  }
  return (bytes + static_cast<std::int64_t>(sizeof(float)) - 1) /
         static_cast<std::int64_t>(sizeof(float));
}

}  // namespace dstune::cuda
