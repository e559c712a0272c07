#include "kernels/cpu/products/product_trial.hpp"

#include <algorithm>
#include <limits>

#include "kernels/cpu/cpu_device.hpp"

namespace dstune::cpu {

// Zeros take as long as other numbers.
ProductTrial::ProductTrial()
    : a_(static_cast<std::size_t>(kRows * kSize)),
      b_(static_cast<std::size_t>(kSize * kSize)),
      c_(static_cast<std::size_t>(kRows * kSize)) {}

Seconds ProductTrial::time(CpuDevice& device, DType dtype) {
  constexpr int kTries = 4;
  const Gemm product{.a = {a_.data(), kRows, kSize, dtype, kSize},
                     .b = {b_.data(), kSize, kSize, dtype, kSize},
                     .c = {c_.data(), kRows, kSize, dtype, kSize}};
  device.run(product);  // makes the kernel, and touches all memory
  Seconds least = std::numeric_limits<Seconds>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const Seconds begin = device.now();
    device.run(product);
    least = std::min(least, device.now() - begin);
  }
  return least;
}

}  // namespace dstune::cpu
