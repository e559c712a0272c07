// The parts of a step's time that the predictor tells apart.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/base/units.hpp"
#include "core/device/ledger/collective_kind.hpp"

namespace dstune {

enum class StepPart {
  products,        ///< arithmetic of matrix products
  product_memory,  ///< the memory traffic of their operands, which counts where a product is small
  attention,
  model_passes,  ///< passes of the model over activations: norms, activation functions, losses
  step_passes,   ///< passes of DeepSpeed over gradients and parameters: copies, casts, sums
  update,        ///< the optimizer
  launches,      ///< a fixed time per operation
  messages,      ///< a fixed time per collective, and per rank that it goes through
  /// What sending bytes takes, here and in the parts below, in the order of CollectiveKind:
  all_reduce,
  reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  host,      ///< the time of host events
  drive,     ///< what the step waits for a drive
  constant,  ///< time that no other part explains
};

constexpr std::size_t kStepParts = 17;

constexpr std::size_t index_of(StepPart part) { return static_cast<std::size_t>(part); }
constexpr StepPart part_of(CollectiveKind kind) {
  return static_cast<StepPart>(index_of(StepPart::all_reduce) + static_cast<std::size_t>(kind));
}
/// The part to which an operation belongs, by its name; not for matrix products.
StepPart part_of(std::string_view operation);

std::string_view name_of(StepPart part);

/// A factor for each part.
using PartFactors = std::array<double, kStepParts>;
constexpr PartFactors kAsRated = [] {
  PartFactors factors{};
  for (double& factor : factors) factor = 1;
  return factors;
}();

/// The seconds on the critical path of one step, by part.
struct StepTime {
  std::array<Seconds, kStepParts> parts{};

  Seconds& at(StepPart part) { return parts[index_of(part)]; }
  Seconds at(StepPart part) const { return parts[index_of(part)]; }
  Seconds total() const;
  bool operator==(const StepTime&) const = default;
};

}  // namespace dstune
