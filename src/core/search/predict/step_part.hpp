// What the time of a step goes to, as far as the predictor tells it apart.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/base/units.hpp"
#include "core/device/ledger/collective_kind.hpp"

namespace dstune {

enum class StepPart {
  products,        ///< arithmetic of matrix products
  product_memory,  ///< their operands, which count where a product is small
  attention,
  model_passes,  ///< what the model does to every activation: norms, activation functions, losses
  step_passes,   ///< what DeepSpeed does to gradients and parameters: copies, casts, sums
  update,        ///< the optimizer
  launches,      ///< a fixed time per operation
  messages,      ///< a fixed time per collective, and per rank that it goes through
  all_reduce,    ///< what is sent; likewise, in the order of CollectiveKind:
  reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  host,      ///< the time of host events
  constant,  ///< what no part explains
};

constexpr std::size_t kStepParts = 16;

constexpr std::size_t index_of(StepPart part) { return static_cast<std::size_t>(part); }
constexpr StepPart part_of(CollectiveKind kind) {
  return static_cast<StepPart>(index_of(StepPart::all_reduce) + static_cast<std::size_t>(kind));
}
/// Of an operation by its name, matrix products aside.
StepPart part_of(std::string_view operation);

std::string_view name_of(StepPart part);

/// By part.
using PartFactors = std::array<double, kStepParts>;
constexpr PartFactors kAsRated = [] {
  PartFactors factors{};
  for (double& factor : factors) factor = 1;
  return factors;
}();

/// Seconds on the critical path of one step.
struct StepTime {
  std::array<Seconds, kStepParts> parts{};

  Seconds& at(StepPart part) { return parts[index_of(part)]; }
  Seconds at(StepPart part) const { return parts[index_of(part)]; }
  Seconds total() const;
  bool operator==(const StepTime&) const = default;
};

}  // namespace dstune
