// Operations to be measured, and buffers for them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_support.hpp"
#include "core/device/device.hpp"
#include "core/device/operations/random.hpp"

namespace dstune::bench {

/// An operation that is run again and again.
template <class Operation>
Case timed(std::string name, Device& device, const Operation& operation) {
  return {std::move(name), [operation, &device] { device.run(operation); }};
}

/// Buffers live as long as the cases that use them.
class Arena {
 public:
  explicit Arena(Device& device) : device_(device) {}

  /// Filled with small normal numbers, so that nothing overflows or is denormal.
  Tensor tensor(std::int64_t numel, DType dtype = DType::fp32) {
    buffers_.push_back(make_buffer(device_, MemoryCategory::temporaries, numel, dtype));
    const Tensor result = buffers_.back().tensor(dtype);
    device_.run(
        FillNormal{.out = result, .stddev = 0.02, .seed = buffers_.size(), .first_index = 0});
    return result;
  }
  Tensor bytes(std::int64_t numel) {
    buffers_.push_back(make_buffer(device_, MemoryCategory::temporaries, numel, DType::int8));
    return buffers_.back().tensor(DType::int8);
  }
  Matrix matrix(std::int64_t rows, std::int64_t cols) {
    return as_matrix(tensor(rows * cols), rows, cols);
  }
  Tensor tokens(std::int64_t count, std::int64_t vocab) {
    buffers_.push_back(make_buffer(device_, MemoryCategory::temporaries, count, DType::int64));
    const Tensor result = buffers_.back().tensor(DType::int64);
    device_.run(FillTokens{.out = result, .vocab = vocab, .seed = 1});
    return result;
  }

 private:
  Device& device_;
  std::vector<Buffer> buffers_;
};

}  // namespace dstune::bench
