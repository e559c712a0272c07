// What one rank of a test has of CUDA on the host: a GPU of its own.
#pragma once

#include <cstddef>

#include <gtest/gtest.h>

#include "kernels/cuda/collectives/communicator_cache.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/device/gpu.hpp"
#include "kernels/cuda/gemm/matrix_products.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::cuda {

constexpr int kMostRanks = 4;
constexpr Bytes kGpuMemory = Bytes{1} << 30U;

/// Made by the rank's thread.
struct RankGpu {
  explicit RankGpu(int index, Bytes memory_limit = Bytes{64} << 20U)
      : gpu(index), device(gpu, products, memory_limit) {}

  Gpu gpu;
  MatrixProducts products;
  CudaDevice device;
};

/// Sets the machine up, and sees that nothing is left.
class OnHostTest : public ::testing::Test {
 protected:
  OnHostTest() { cuda_on_host::set_up({.devices = kMostRanks, .bytes = kGpuMemory}); }
  ~OnHostTest() override {
    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}) << "something is left";
  }
};

}  // namespace dstune::cuda
