#include "kernels/cuda/gemm/product_plan.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/base/text.hpp"
#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

namespace {

using Operation =
    std::unique_ptr<cublasLtMatmulDescOpaque_t, cublasStatus_t (*)(cublasLtMatmulDescOpaque_t*)>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t,
                               cublasStatus_t (*)(cublasLtMatrixLayoutOpaque_t*)>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                                   cublasStatus_t (*)(cublasLtMatmulPreferenceOpaque_t*)>;

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::fp16:
      return CUDA_R_16F;
    default:
      throw std::invalid_argument("gemm: of floating-point matrices only");
  }
}

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t which, T value) {
  check_cublas(cublas_lt().MatmulDescSetAttribute(operation.get(), which, &value, sizeof(value)),
               "cublasLtMatmulDescSetAttribute");
}

cublasOperation_t transposing(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

// CUBLAS_COMPUTE_32F sums in fp32 and does not round fp32 operands to TF32, as PyTorch with
// torch.backends.cuda.matmul.allow_tf32 = False, its default.
Operation operation_of(const ColumnMajorProduct& product) {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas(cublas_lt().MatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  Operation operation(made, cublas_lt().MatmulDescDestroy);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, transposing(product.transpose_left));
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, transposing(product.transpose_right));
  if (product.bias_alignment != 0)
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  return operation;
}

template <class T>
void set(const Layout& layout, cublasLtMatrixLayoutAttribute_t which, T value) {
  check_cublas(cublas_lt().MatrixLayoutSetAttribute(layout.get(), which, &value, sizeof(value)),
               "cublasLtMatrixLayoutSetAttribute");
}

Layout layout_of(DType dtype, const ColumnMajorProduct& product,
                 const ColumnMajorProduct::Operand& operand) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublas_lt().MatrixLayoutCreate(
                   &made, type_of(dtype), static_cast<std::uint64_t>(operand.rows),
                   static_cast<std::uint64_t>(operand.cols), operand.stride),
               "cublasLtMatrixLayoutCreate");
  Layout layout(made, cublas_lt().MatrixLayoutDestroy);
  if (product.count > 1) {
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(product.count));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, operand.step);
  }
  return layout;
}

template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t which, T value) {
  check_cublas(
      cublas_lt().MatmulPreferenceSetAttribute(preference.get(), which, &value, sizeof(value)),
      "cublasLtMatmulPreferenceSetAttribute");
}

// The bias's alignment goes to cuBLASLt as D's, which has none of its own: so does PyTorch.
std::uint32_t alignment_of_d(const ColumnMajorProduct& product) {
  const std::uint32_t result = product.result.alignment;
  return product.bias_alignment == 0 ? result : std::min(result, product.bias_alignment);
}

// Parts of a long sum may meet in the type of the result, which PyTorch allows cuBLAS by default
// (allow_bf16_reduced_precision_reduction).
Preference preference_of(const ColumnMajorProduct& product, Bytes workspace) {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublas_lt().MatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  Preference preference(made, cublas_lt().MatmulPreferenceDestroy);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace});
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.left.alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.right.alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.result.alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of_d(product));
  return preference;
}

}  // namespace

// What CUDA itself reports says more, and tells whether the device is lost.
void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  check(cudaGetLastError(), call, __FILE__, __LINE__);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw_out_of_memory(kUnknownSize);
  throw CudaError(concat(call, ": ", cublas_lt().GetStatusName(status), " (",
                         cublas_lt().GetStatusString(status), ")"));
}

ProductPlan::ProductPlan(cublasLtHandle_t handle, const ColumnMajorProduct& product, const Gemm& op,
                         Bytes workspace)
    : operation_(operation_of(product)),
      left_(layout_of(product.dtype, product, product.left)),
      right_(layout_of(product.dtype, product, product.right)),
      result_(layout_of(product.result_dtype, product, product.result)) {
  set_bias(op);
  choose(handle, product, workspace);
}

void ProductPlan::set_bias(const Gemm& op) const {
  if (op.bias)
    set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(op.bias->data));
}

void ProductPlan::choose(cublasLtHandle_t handle, const ColumnMajorProduct& product,
                         Bytes workspace) {
  const Preference preference = preference_of(product, workspace);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check_cublas(cublas_lt().MatmulAlgoGetHeuristic(handle, operation_.get(), left_.get(),
                                                  right_.get(), result_.get(), result_.get(),
                                                  preference.get(), 1, &best, &found),
               "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) check_cublas(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic");
  algorithm_ = best.algo;
  workspace_ = best.workspaceSize;
}

void ProductPlan::run(cublasLtHandle_t handle, const Gemm& op, void* workspace,
                      cudaStream_t stream) const {
  set_bias(op);
  const float alpha = 1;
  const auto beta = static_cast<float>(op.beta);
  check_cublas(
      cublas_lt().Matmul(handle, operation_.get(), &alpha, op.b.data, left_.get(), op.a.data,
                         right_.get(), &beta, op.c.data, result_.get(), op.c.data, result_.get(),
                         &algorithm_, workspace, workspace_, stream),
      "cublasLtMatmul");
}

}  // namespace dstune::cuda
