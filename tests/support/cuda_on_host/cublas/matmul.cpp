#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/cublas/descriptors.hpp"
#include "tests/support/cuda_on_host/cublas/matrix.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {

cublasStatus_t check_product(const Product& product, const Layout& a, const Layout& b,
                             const Layout& c, const Layout& d) {
  const auto floating = [](const Layout& layout) {
    return layout.type == CUDA_R_32F || layout.type == CUDA_R_16F || layout.type == CUDA_R_16BF;
  };
  const bool known =
      product.scale == CUDA_R_32F && product.pointers == CUBLASLT_POINTER_MODE_HOST &&
      (product.epilogue == CUBLASLT_EPILOGUE_DEFAULT || product.epilogue == CUBLASLT_EPILOGUE_BIAS);
  const bool typed = floating(a) && a.type == b.type && floating(d) && c.type == d.type;
  const bool columns = a.order == CUBLASLT_ORDER_COL && b.order == CUBLASLT_ORDER_COL &&
                       d.order == CUBLASLT_ORDER_COL;
  if (!known || !typed || !columns) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (product.epilogue == CUBLASLT_EPILOGUE_BIAS && product.bias == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto op_a =
      product.op_a == CUBLAS_OP_N ? std::pair(a.rows, a.columns) : std::pair(a.columns, a.rows);
  const auto op_b =
      product.op_b == CUBLAS_OP_N ? std::pair(b.rows, b.columns) : std::pair(b.columns, b.rows);
  const bool agree = op_a.second == op_b.first && d.rows == op_a.first &&
                     d.columns == op_b.second && c.rows == d.rows && c.columns == d.columns &&
                     a.batch == d.batch && b.batch == d.batch && c.batch == d.batch;
  const auto strided = [](const Layout& layout) {
    return layout.ld >= static_cast<std::int64_t>(layout.rows);
  };
  return agree && strided(a) && strided(b) && strided(c) && strided(d)
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_INVALID_VALUE;
}

namespace {

/// A product with all that cublasLtMatmul() was given, as it was at the call.
struct Work {
  Product product;
  Layout layout_a, layout_b, layout_c, layout_d;
  const void *a, *b, *c;
  void* d;
  float alpha, beta;

  Matrix bias() const {
    if (product.epilogue != CUBLASLT_EPILOGUE_BIAS) return {1, 1, {0.0F}};
    Layout layout = layout_d;
    layout.columns = 1;
    return load(product.bias, layout, 0, CUBLAS_OP_N, false);
  }

  void run(int index, const Matrix& bias) const {
    const bool tf32 =
        product.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && layout_a.type == CUDA_R_32F;
    Matrix result = multiply(load(a, layout_a, index, product.op_a, tf32),
                             load(b, layout_b, index, product.op_b, tf32));
    const Matrix before = beta == 0.0F ? Matrix{} : load(c, layout_c, index, CUBLAS_OP_N, false);
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      result.values[i] = alpha * result.values[i] +
                         (beta == 0.0F ? 0.0F : beta * before.values[i]) +
                         bias.values[i % result.rows % bias.values.size()];
    }
    store(d, layout_d, index, result);
  }

  void operator()() const {
    const Matrix added = bias();
    for (int index = 0; index < layout_d.batch; ++index) run(index, added);
  }
};

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

struct cublasLtContext {};

cublasStatus_t cublasLtCreate(cublasLtHandle_t* lightHandle) {
  return library_call("cublasLtCreate", CUBLAS_STATUS_NOT_INITIALIZED, [&] {
    *lightHandle = new cublasLtContext;
    const Locked locked;
    ++state().library_handles;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle) {
  begin_call("cublasLtDestroy");
  delete lightHandle;
  const Locked locked;
  --state().library_handles;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t /*lightHandle*/, cublasLtMatmulDesc_t operationDesc,
    cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc,
    cublasLtMatrixLayout_t Ddesc, cublasLtMatmulPreference_t /*preference*/, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int* returnAlgoCount) {
  return library_call("cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_EXECUTION_FAILED, [&] {
    *returnAlgoCount = 0;
    if (requestedAlgoCount < 1) return CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status =
        check_product(read<Product>(operationDesc), read<Layout>(Adesc), read<Layout>(Bdesc),
                      read<Layout>(Cdesc), read<Layout>(Ddesc));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    heuristicResultsArray[0] = {};
    heuristicResultsArray[0].wavesCount = 1.0F;
    *returnAlgoCount = 1;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*lightHandle*/, cublasLtMatmulDesc_t computeDesc,
                              const void* alpha, const void* A, cublasLtMatrixLayout_t Adesc,
                              const void* B, cublasLtMatrixLayout_t Bdesc, const void* beta,
                              const void* C, cublasLtMatrixLayout_t Cdesc, void* D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* /*algo*/,
                              void* /*workspace*/, std::size_t /*workspaceSizeInBytes*/,
                              cudaStream_t stream) {
  return library_call("cublasLtMatmul", CUBLAS_STATUS_EXECUTION_FAILED, [&] {
    const auto product = read<Product>(computeDesc);
    const Work work{product,
                    read<Layout>(Adesc),
                    read<Layout>(Bdesc),
                    read<Layout>(Cdesc),
                    read<Layout>(Ddesc),
                    A,
                    B,
                    C,
                    D,
                    *static_cast<const float*>(alpha),
                    *static_cast<const float*>(beta)};
    const cublasStatus_t status =
        check_product(product, work.layout_a, work.layout_b, work.layout_c, work.layout_d);
    if (status == CUBLAS_STATUS_SUCCESS) enqueue(stream, "cublasLtMatmul", work);
    return status;
  });
}
