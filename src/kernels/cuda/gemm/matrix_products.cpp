#include "kernels/cuda/gemm/matrix_products.hpp"

#include <map>

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/base/handles.hpp"
#include "kernels/cuda/gemm/product_plan.hpp"

namespace dstune::cuda {

namespace {

Bytes workspace_of_this_gpu() {
  int gpu = 0;
  int major = 0;
  DSTUNE_CUDA_CHECK(cudaGetDevice(&gpu));
  DSTUNE_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu));
  return cublas_workspace(major);
}

}  // namespace

Bytes cublas_workspace(int major) {
  constexpr Bytes kSince90 = Bytes{32} << 20U;
  constexpr Bytes kBefore = (Bytes{8} << 20U) + (Bytes{128} << 10U);
  return major >= 9 ? kSince90 : kBefore;
}

struct MatrixProducts::State {
  cublasLtHandle_t handle = nullptr;
  DeviceMemory workspace;
  Bytes workspace_size = 0;
  std::map<ColumnMajorProduct, ProductPlan> plans;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    plans.clear();
    if (handle != nullptr) cublas_lt().Destroy(handle);
  }

  const ProductPlan& plan_of(const Gemm& op) {
    const ColumnMajorProduct product = product_of(op);
    const auto known = plans.find(product);
    if (known != plans.end()) return known->second;
    // Groups of rows are of any size: what was seen once may never come again.
    constexpr std::size_t kMostPlans = 4096;
    if (plans.size() >= kMostPlans) plans.clear();
    return plans.emplace(product, ProductPlan(handle, product, op, workspace_size)).first->second;
  }
};

MatrixProducts::MatrixProducts() : state_(std::make_unique<State>()) {
  check_cublas(cublas_lt().Create(&state_->handle), "cublasLtCreate");
  state_->workspace_size = workspace_of_this_gpu();
  state_->workspace = make_device_memory(state_->workspace_size);
}

MatrixProducts::~MatrixProducts() = default;

void MatrixProducts::run(const Gemm& op, cudaStream_t stream) {
  if (op.c.numel() == 0) return;
  state_->plan_of(op).run(state_->handle, op, state_->workspace.get(), stream);
}

Bytes MatrixProducts::workspace() const noexcept { return state_->workspace_size; }

}  // namespace dstune::cuda
