// Numbers in host memory, and all ways to make a pass over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dtype.hpp"
#include "core/device/tensor.hpp"
#include "kernels/host/instruction_set.hpp"
#include "kernels/host/passes.hpp"
#include "kernels/host/threads.hpp"

namespace dstune::host::test {

/// None, around a piece of a range, and more than one chunk between ticks with a rest.
inline constexpr std::int64_t kCounts[] = {0, 1, 15, 16, 17, 1000003};

/// Numbers in [least, most), of which neighbours have nothing to do with each other.
inline std::vector<float> numbers(std::int64_t count, float least, float most, std::uint32_t seed) {
  std::vector<float> result(static_cast<std::size_t>(count));
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (float& number : result) {
    state = state * 1664525U + 1013904223U;
    number = least + (most - least) * static_cast<float>(state >> 8U) * 0x1p-24F;
  }
  return result;
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, BFloat16>) return DType::bf16;
  if constexpr (std::is_same_v<T, Float16>) return DType::fp16;
  return DType::fp32;
}

template <class T>
Tensor tensor_of(std::vector<T>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), dtype_of<T>()};
}

/// f(threads, options) for teams of 1, 2, 3 and 5 threads and all sets of instructions.
template <class F>
void for_teams_and_instructions(F f) {
  for (const int team : {1, 2, 3, 5}) {
    Threads threads(team);
    for (const InstructionSet set : instruction_sets()) {
      SCOPED_TRACE(testing::Message() << team << " threads, " << name_of(set));
      f(threads, PassOptions{.instructions = set});
    }
  }
}

}  // namespace dstune::host::test
