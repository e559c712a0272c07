// What one micro-step gives a model.
#pragma once

#include <cstdint>

#include "core/train/layers/workspace.hpp"

namespace dstune::nn {

struct StepInput {
  Tensor tokens;
  std::uint64_t seed = 0;
  Tensor loss;  ///< fp32, one element

  /// An independent seed for each place that drops out.
  std::uint64_t seed_at(std::uint64_t place) const { return layers::seed_of(seed, place); }
};

}  // namespace dstune::nn
