#include "core/train/quantization.hpp"

#include <algorithm>

namespace dstune {

namespace {

constexpr std::int64_t kLargestWeightGroup = 8000;
// The kernels read 16 bytes of 16-bit elements at a time.
constexpr std::int64_t kMultiple = 8;

}  // namespace

std::optional<std::int64_t> weight_groups(std::int64_t numel) {
  if (numel <= 0 || numel % kMultiple != 0) return std::nullopt;
  const std::int64_t units = numel / kMultiple;
  const std::int64_t largest = kLargestWeightGroup / kMultiple;
  std::int64_t size = std::min(units, largest);
  while (units % size != 0) --size;
  return units / size;
}

std::int64_t gradient_groups(std::int64_t rows, std::int64_t cols, int ranks) {
  return std::max({rows, cols, static_cast<std::int64_t>(ranks)});
}

GradientPath gradient_path(std::int64_t rows, std::int64_t cols, int ranks) {
  if (cols == 0 || rows * cols % (2 * static_cast<std::int64_t>(ranks)) != 0) {
    return GradientPath::reduce_scatter;
  }
  const std::int64_t groups = gradient_groups(rows, cols, ranks);
  const bool even = groups % ranks == 0 && rows * cols % (kMultiple * groups) == 0;
  return even ? GradientPath::quantized : GradientPath::refused;
}

}  // namespace dstune
