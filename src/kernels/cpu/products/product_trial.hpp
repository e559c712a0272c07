// How long a matrix product takes here: one whose shape is a layer's.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/dtype.hpp"

namespace dstune::cpu {

class CpuDevice;

/// A product of 256 x 512 by 512 x 512, about a millisecond in fp32.
class ProductTrial {
 public:
  static constexpr std::int64_t kRows = 256;
  static constexpr std::int64_t kSize = 512;

  ProductTrial();

  /// The least of some tries: what else the machine does only adds to it.
  Seconds time(CpuDevice& device, DType dtype);

 private:
  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> c_;
};

}  // namespace dstune::cpu
