// The suite of every Device for the CUDA backend.
#include <optional>

#include <cuda_runtime_api.h>

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "tests/kernels/device/cuda_machine.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing {

namespace {

/// The GPU, which outlives every device of the suite.
class OneGpu : public ::testing::Environment {
 public:
  void SetUp() override {
    set_up_gpus();
    gpu_.emplace(0);
    products_.emplace();
  }
  void TearDown() override {
    products_.reset();
    gpu_.reset();
    expect_nothing_left();
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

// cudaMemcpy() of pageable memory may return before its last bytes arrive, and the device's streams
// wait for nobody.
void copy_bytes(const void* from, void* to, std::size_t size) {
  DSTUNE_CUDA_CHECK(cudaMemcpy(to, from, size, cudaMemcpyDefault));
  DSTUNE_CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

std::vector<DeviceCase> device_cases() {
  return {{"cuda", [](Bytes limit) { return one_gpu().make(limit); }, copy_bytes, copy_bytes,
           has_real_gpus()}};
}

}  // namespace dstune::testing
