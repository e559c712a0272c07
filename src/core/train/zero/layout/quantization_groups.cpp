#include "core/train/zero/layout/quantization_groups.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::int64_t kLargestWeightGroup = 8000;
// The kernels read 16 bytes of 16-bit elements at a time.
constexpr std::int64_t kMultiple = 8;

}  // namespace

std::optional<std::int64_t> weight_groups(std::int64_t numel) {
  if (numel <= 0 || numel % kMultiple != 0) return std::nullopt;
  const std::int64_t units = numel / kMultiple;
  std::int64_t size = std::min(units, kLargestWeightGroup / kMultiple);
  while (units % size != 0) --size;
  return units / size;
}

std::int64_t gradient_groups(const Shape& shape, int ranks) {
  return std::max({shape.at(0), shape.at(1), static_cast<std::int64_t>(ranks)});
}

GradientPath gradient_path(const Shape& shape, int ranks) {
  if (shape.size() < 2 || shape[0] * shape[1] % (2 * static_cast<std::int64_t>(ranks)) != 0) {
    return GradientPath::reduce_scatter;
  }
  const std::int64_t groups = gradient_groups(shape, ranks);
  const bool even = groups % ranks == 0 && shape[0] * shape[1] % (kMultiple * groups) == 0;
  return even ? GradientPath::quantized : GradientPath::refused;
}

NodeGrid node_grid(int ranks, int devices_per_node) {
  if (devices_per_node == 0 || ranks <= devices_per_node) return {1, ranks};
  if (ranks % devices_per_node != 0) {
    throw QuantizationRefused(concat("zero_quantized_gradients: ", ranks,
                                     " ranks do not fill nodes "
                                     "of ",
                                     devices_per_node, " devices"));
  }
  return {ranks / devices_per_node, devices_per_node};
}

}  // namespace dstune
