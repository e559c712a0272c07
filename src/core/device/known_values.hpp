// Numbers of which everybody knows the sum.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace dstune {

/// What `rank` gives at `index`: small integers, so that sums of thousands of ranks are exact in
/// fp32, in whatever order they are made.
constexpr float known_value(int rank, std::size_t index) {
  constexpr std::size_t kRange = 23;
  const std::size_t mixed = index * 7 + static_cast<std::size_t>(rank) * 13;
  return static_cast<float>(mixed % kRange) - 11.0F;
}

/// The sum over ranks 0 .. size - 1.
constexpr float known_sum(int size, std::size_t index) {
  float sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += known_value(rank, index);
  return sum;
}

/// The place where a value is not what it must be.
struct WrongValue {
  std::size_t index = 0;
  float actual = 0;
  float expected = 0;
};

/// The first of `values` that is not expected(index), if any; NaN never is.
template <class Expected>
std::optional<WrongValue> first_wrong(std::span<const float> values, Expected expected) {
  for (std::size_t index = 0; index < values.size(); ++index) {
    const float wanted = expected(index);
    if (!(values[index] == wanted)) return WrongValue{index, values[index], wanted};
  }
  return std::nullopt;
}

}  // namespace dstune
