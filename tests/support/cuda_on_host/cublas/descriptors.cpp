#include "tests/support/cuda_on_host/cublas/descriptors.hpp"

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"

namespace cuda_on_host {
namespace {

void count_handles(int change) {
  const Locked locked;
  state().library_handles += change;
}

template <class Opaque, class Content>
cublasStatus_t create(const char* function, Opaque** opaque, const Content& content) {
  return library_call(function, CUBLAS_STATUS_ALLOC_FAILED, [&] {
    *opaque = new Opaque;
    write(*opaque, content);
    count_handles(1);
    return CUBLAS_STATUS_SUCCESS;
  });
}

template <class Opaque>
cublasStatus_t destroy(const char* function, Opaque* opaque) {
  begin_call(function);
  delete opaque;
  count_handles(-1);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Value>
cublasStatus_t copy(Value& target, const void* value, std::size_t bytes) {
  if (bytes != sizeof target) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&target, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set(Layout& layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                   std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return copy(layout.type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return copy(layout.order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return copy(layout.rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return copy(layout.columns, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return copy(layout.ld, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return copy(layout.batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return copy(layout.batch_stride, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t set(Product& product, cublasLtMatmulDescAttributes_t attribute, const void* value,
                   std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return copy(product.compute, value, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return copy(product.scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return copy(product.pointers, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return copy(product.op_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return copy(product.op_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return copy(product.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return copy(product.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      break;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <class Content, class Opaque, class Attribute>
cublasStatus_t set_attribute(const char* function, Opaque* opaque, Attribute attribute,
                             const void* value, std::size_t bytes) {
  return library_call(function, CUBLAS_STATUS_INTERNAL_ERROR, [&] {
    auto content = read<Content>(opaque);
    const cublasStatus_t status = set(content, attribute, value, bytes);
    write(opaque, content);
    return status;
  });
}

Layout layout_of(cudaDataType type, std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  return {.type = type, .rows = rows, .columns = cols, .ld = ld};
}

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matLayout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  return create("cublasLtMatrixLayoutCreate", matLayout, layout_of(type, rows, cols, ld));
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout,
                                                 std::size_t /*size*/, cudaDataType type,
                                                 std::uint64_t rows, std::uint64_t cols,
                                                 std::int64_t ld) {
  write(matLayout, layout_of(type, rows, cols, ld));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matLayout,
                                                cublasLtMatrixLayoutAttribute_t attr,
                                                const void* buf, std::size_t sizeInBytes) {
  return set_attribute<Layout>("cublasLtMatrixLayoutSetAttribute", matLayout, attr, buf,
                               sizeInBytes);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout) {
  return destroy("cublasLtMatrixLayoutDestroy", matLayout);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmulDesc,
                                        cublasComputeType_t computeType, cudaDataType_t scaleType) {
  return create("cublasLtMatmulDescCreate", matmulDesc,
                Product{.compute = computeType, .scale = scaleType});
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t matmulDesc,
                                               std::size_t /*size*/,
                                               cublasComputeType_t computeType,
                                               cudaDataType_t scaleType) {
  write(matmulDesc, Product{.compute = computeType, .scale = scaleType});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
                                              cublasLtMatmulDescAttributes_t attr, const void* buf,
                                              std::size_t sizeInBytes) {
  return set_attribute<Product>("cublasLtMatmulDescSetAttribute", matmulDesc, attr, buf,
                                sizeInBytes);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc) {
  return destroy("cublasLtMatmulDescDestroy", matmulDesc);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* pref) {
  return create("cublasLtMatmulPreferenceCreate", pref, std::uint64_t{0});
}

/// Whatever is preferred, there is one algorithm, and it needs no workspace.
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t /*pref*/,
                                                    cublasLtMatmulPreferenceAttributes_t /*attr*/,
                                                    const void* /*buf*/,
                                                    std::size_t /*sizeInBytes*/) {
  return library_call("cublasLtMatmulPreferenceSetAttribute", CUBLAS_STATUS_INTERNAL_ERROR,
                      [] { return CUBLAS_STATUS_SUCCESS; });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref) {
  return destroy("cublasLtMatmulPreferenceDestroy", pref);
}
