#include "kernels/cpu/products/product_trial.hpp"

#include <algorithm>
#include <limits>

#include "kernels/cpu/cpu_device.hpp"

namespace dstune::cpu {

// Zeros take as long as other numbers.
ProductTrial::ProductTrial(std::int64_t rows, std::int64_t size)
    : rows_(rows),
      size_(size),
      a_(static_cast<std::size_t>(rows * size)),
      b_(static_cast<std::size_t>(size * size)),
      c_(static_cast<std::size_t>(rows * size)) {}

Seconds ProductTrial::time(CpuDevice& device, DType dtype, int tries) {
  const Gemm product{.a = {a_.data(), rows_, size_, dtype, size_},
                     .b = {b_.data(), size_, size_, dtype, size_},
                     .c = {c_.data(), rows_, size_, dtype, size_}};
  device.run(product);  // makes the kernel, and touches all memory
  Seconds least = std::numeric_limits<Seconds>::infinity();
  for (int i = 0; i < tries; ++i) {
    const Seconds begin = device.now();
    device.run(product);
    least = std::min(least, device.now() - begin);
  }
  return least;
}

}  // namespace dstune::cpu
