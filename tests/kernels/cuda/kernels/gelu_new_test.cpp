#include "core/device/operations/gelu_new.hpp"

#include <optional>

#include <gtest/gtest.h>

#include "core/device/operations/fill.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda {

namespace {

class GeluNewTest : public ::testing::Test {
 protected:
  GeluNewTest() {
    cuda_on_host::set_up({});
    gpu_.emplace(0);
    products_.emplace();
    device_.emplace(*gpu_, *products_, Bytes{1} << 20U);
  }

  Buffer ones() {
    Buffer buffer = make_buffer(*device_, MemoryCategory::temporaries, 64, DType::bf16);
    device_->run(FillConstant{buffer.tensor(DType::bf16), 1});
    return buffer;
  }

  /// What `operation` launches.
  template <class Operation>
  std::size_t launches(const Operation& operation) {
    device_->synchronize();
    const auto before = cuda_on_host::calls("cudaLaunchKernelEx");
    device_->run(operation);
    device_->synchronize();
    return cuda_on_host::calls("cudaLaunchKernelEx") - before;
  }

  std::optional<Gpu> gpu_;
  std::optional<MatrixProducts> products_;
  std::optional<CudaDevice> device_;
};

TEST_F(GeluNewTest, ItLaunchesAsManyKernelsAsEagerPyTorch) {
  const Buffer x = ones();
  const Buffer out = ones();
  const Buffer d_x = ones();
  const Buffer saved[] = {ones(), ones(), ones()};
  const GeluSaved tensors{saved[0].tensor(DType::bf16), saved[1].tensor(DType::bf16),
                          saved[2].tensor(DType::bf16)};

  EXPECT_EQ(launches(GeluNew{x.tensor(DType::bf16), tensors, out.tensor(DType::bf16)}), 8U);
  EXPECT_EQ(launches(GeluNewBackward{out.tensor(DType::bf16), x.tensor(DType::bf16), tensors,
                                     d_x.tensor(DType::bf16)}),
            11U);
}

}  // namespace

}  // namespace dstune::cuda
