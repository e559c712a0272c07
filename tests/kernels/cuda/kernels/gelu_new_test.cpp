#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/operations/activations.hpp"
#include "core/device/operations/elementwise.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda::gelu_new_test {

namespace {

class GeluNewTest : public ::testing::Test {
 protected:
  GeluNewTest() {
    cuda_on_host::set_up({});
    gpu_.emplace(0);
    products_.emplace();
    device_.emplace(*gpu_, *products_, Bytes{1} << 20U);
  }

  Buffer filled(DType dtype, double value) {
    Buffer buffer = make_buffer(*device_, MemoryCategory::temporaries, 64, dtype);
    device_->run(FillConstant{buffer.tensor(dtype), value});
    return buffer;
  }
  Buffer ones() { return filled(DType::bf16, 1); }

  /// d_x of d_out = 1, there and back in fp16.
  float fp16_gradient_at(double value) {
    constexpr DType kHalf = DType::fp16;
    const Buffer x = filled(kHalf, value);
    const Buffer out = filled(kHalf, 0);
    const Buffer d_out = filled(kHalf, 1);
    const Buffer saved[] = {filled(kHalf, 0), filled(kHalf, 0), filled(kHalf, 0)};
    const GeluSaved tensors{saved[0].tensor(kHalf), saved[1].tensor(kHalf), saved[2].tensor(kHalf)};
    device_->run(GeluNew{x.tensor(kHalf), tensors, out.tensor(kHalf)});
    device_->run(GeluNewBackward{d_out.tensor(kHalf), x.tensor(kHalf), tensors, out.tensor(kHalf)});
    std::vector<float> d_x(64);
    device_->read(out.tensor(kHalf), d_x);
    return d_x.front();
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

TEST_F(GeluNewTest, Fp16sGradientOverflowsWhereEagerPyTorchsDoes) {
  EXPECT_EQ(fp16_gradient_at(147), 1);
  EXPECT_TRUE(std::isnan(fp16_gradient_at(148)));
}

}  // namespace

}  // namespace dstune::cuda::gelu_new_test
