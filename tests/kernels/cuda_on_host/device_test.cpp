// The suite of every Device for the CUDA backend, on CUDA on the host.
#include "tests/kernels/device/device_test.hpp"

#include <optional>

#include <cuda_runtime_api.h>

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::testing {

namespace {

/// The GPU, which outlives every device of the suite.
class OneGpu : public ::testing::Environment {
 public:
  void SetUp() override {
    cuda_on_host::set_up({.bytes = Bytes{2} << 30U});
    gpu_.emplace(0);
    products_.emplace();
  }
  void TearDown() override {
    products_.reset();
    gpu_.reset();
    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}) << "the backend has lost something";
  }

  std::unique_ptr<Device> make(Bytes limit) {
    return std::make_unique<cuda::CudaDevice>(*gpu_, *products_, limit);
  }

 private:
  std::optional<cuda::Gpu> gpu_;
  std::optional<cuda::MatrixProducts> products_;
};

OneGpu& one_gpu() {
  static auto* const environment = new OneGpu;  // googletest deletes it
  return *environment;
}

[[maybe_unused]] const auto* const registered = ::testing::AddGlobalTestEnvironment(&one_gpu());

void copy_bytes(const void* from, void* to, std::size_t size) {
  DSTUNE_CUDA_CHECK(cudaMemcpy(to, from, size, cudaMemcpyDefault));
}

}  // namespace

std::vector<DeviceCase> device_cases() {
  return {
      {"cuda_on_host", [](Bytes limit) { return one_gpu().make(limit); }, copy_bytes, copy_bytes}};
}

}  // namespace dstune::testing
