// How long a matrix product takes here: one whose shape is a layer's.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/dtype.hpp"

namespace dstune::cpu {

class CpuDevice;

/// A product of 256 x 512 by 512 x 512, about a millisecond in fp32, or of 16 x 64 by 64 x 64, of
/// which next to nothing is arithmetic.
/// scripts/calibration/products.py has torch make the same one.
class ProductTrial {
 public:
  static constexpr std::int64_t kRows = 256;
  static constexpr std::int64_t kSize = 512;
  static constexpr double kFlop = 2.0 * kRows * kSize * kSize;

  static constexpr std::int64_t kFewRows = 16;
  static constexpr std::int64_t kSmallSize = 64;

  explicit ProductTrial(std::int64_t rows = kRows, std::int64_t size = kSize);

  /// The least of some tries: what else the machine does only adds to it.
  Seconds time(CpuDevice& device, DType dtype, int tries = 4);

 private:
  std::int64_t rows_, size_;
  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> c_;
};

}  // namespace dstune::cpu
