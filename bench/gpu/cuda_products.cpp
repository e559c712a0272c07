#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bench/gpu/libraries.hpp"
#include "core/base/text.hpp"
#include "kernels/cuda/base/handles.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/libraries/cublas_lt.hpp"

namespace dstune::bench {

namespace {

using cuda::cublas_lt;

constexpr Bytes kWorkspace = Bytes{64} << 20U;
constexpr int kProposals = 16;

void must(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(concat(call, ": ", cublas_lt().GetStatusName(status)));
}

/// One product, its descriptors and its algorithm.
class Alone {
 public:
  // A row-major matrix is its transpose by columns, so that C^T = op(B)^T op(A)^T is computed.
  Alone(Device& device, Stopwatch& stopwatch, const Gemm& op)
      : stream_(dynamic_cast<cuda::CudaDevice&>(device).gpu().stream(Stream::compute)),
        op_(op),
        workspace_(cuda::make_device_memory(kWorkspace)),
        left_(layout_of(op.b)),
        right_(layout_of(op.a)),
        result_(layout_of(op.c)) {
    must(cublas_lt().Create(&handle_), "cublasLtCreate");
    must(cublas_lt().MatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
         "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation_of(op.transpose_b));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation_of(op.transpose_a));
    if (op.bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(op.bias->data));
    }
    choose(stopwatch);
  }
  ~Alone() {
    cublas_lt().MatrixLayoutDestroy(left_);
    cublas_lt().MatrixLayoutDestroy(right_);
    cublas_lt().MatrixLayoutDestroy(result_);
    cublas_lt().MatmulDescDestroy(product_);
    cublas_lt().Destroy(handle_);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  void run() const { run(best_); }

 private:
  static cublasLtMatrixLayout_t layout_of(const Matrix& matrix) {
    if (matrix.dtype != DType::bf16) throw std::invalid_argument("product_alone: of bf16 only");
    cublasLtMatrixLayout_t layout = nullptr;
    must(cublas_lt().MatrixLayoutCreate(&layout, CUDA_R_16BF,
                                        static_cast<std::uint64_t>(matrix.cols),
                                        static_cast<std::uint64_t>(matrix.rows), matrix.stride),
         "cublasLtMatrixLayoutCreate");
    return layout;
  }
  static cublasOperation_t operation_of(Transpose transpose) {
    return transpose == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N;
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t which, T value) {
    must(cublas_lt().MatmulDescSetAttribute(product_, which, &value, sizeof(value)),
         "cublasLtMatmulDescSetAttribute");
  }
  std::vector<cublasLtMatmulHeuristicResult_t> proposals() const {
    cublasLtMatmulPreference_t preference = nullptr;
    must(cublas_lt().MatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const std::uint64_t space = kWorkspace;
    must(cublas_lt().MatmulPreferenceSetAttribute(
             preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &space, sizeof(space)),
         "cublasLtMatmulPreferenceSetAttribute");
    std::vector<cublasLtMatmulHeuristicResult_t> found(kProposals);
    int count = 0;
    must(cublas_lt().MatmulAlgoGetHeuristic(handle_, product_, left_, right_, result_, result_,
                                            preference, kProposals, found.data(), &count),
         "cublasLtMatmulAlgoGetHeuristic");
    cublas_lt().MatmulPreferenceDestroy(preference);
    found.resize(static_cast<std::size_t>(count));
    return found;
  }
  void choose(Stopwatch& stopwatch) {
    const auto all = proposals();
    if (all.empty()) throw std::runtime_error("cuBLASLt proposes no algorithm");
    std::vector<Queue> queues;
    for (const auto& each : all) queues.emplace_back([this, &each] { run(each); });
    const std::vector<Seconds> times = stopwatch.times(queues);
    best_ = all[static_cast<std::size_t>(
        std::distance(times.begin(), std::min_element(times.begin(), times.end())))];
  }
  void run(const cublasLtMatmulHeuristicResult_t& how) const {
    const float one = 1;
    const float zero = 0;
    must(cublas_lt().Matmul(handle_, product_, &one, op_.b.data, left_, op_.a.data, right_, &zero,
                            op_.c.data, result_, op_.c.data, result_, &how.algo, workspace_.get(),
                            kWorkspace, stream_),
         "cublasLtMatmul");
  }

  cudaStream_t stream_;
  Gemm op_;
  cuda::DeviceMemory workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t left_;
  cublasLtMatrixLayout_t right_;
  cublasLtMatrixLayout_t result_;
  cublasLtMatmulHeuristicResult_t best_{};
};

}  // namespace

std::function<void()> product_alone(Device& device, Stopwatch& stopwatch, const Gemm& op) {
  return [alone = std::make_shared<const Alone>(device, stopwatch, op)] { alone->run(); };
}

}  // namespace dstune::bench
