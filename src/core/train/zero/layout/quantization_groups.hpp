// ZeRO++'s groups: how messages and gradients are cut for quantisation, and where they cannot be
// cut.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/experiment/step_refused.hpp"

namespace dstune {

/// Thrown where DeepSpeed stops with an assertion, or computes wrong values without a word. The
/// experiment is Skipped (docs/decisions/quantisation.md).
class QuantizationRefused : public StepRefused {
 public:
  using StepRefused::StepRefused;
};

/// The number of groups of a message of `numel` weights (qwZ): the fewest of at most 8000 elements
/// each, whose size is a multiple of 8. None if numel itself is not a multiple of 8: DeepSpeed
/// fails then.
std::optional<std::int64_t> weight_groups(std::int64_t numel);

/// How a gradient is reduced with zero_quantized_gradients on more than one node (qgZ).
enum class GradientPath {
  quantized,
  reduce_scatter,  ///< 1-D tensors, and where numel is not a multiple of 2 * ranks
  refused,         ///< DeepSpeed garbles it: the groups cannot be dealt out evenly, or are no
                   ///< multiples of 8 elements
};

using Shape = std::vector<std::int64_t>;

/// The number of groups of a gradient of two dimensions: as many as its larger side has elements,
/// and at least one per rank.
std::int64_t gradient_groups(const Shape& shape, int ranks);
GradientPath gradient_path(const Shape& shape, int ranks);

/// The ranks as DeepSpeed sees them, node by node.
struct NodeGrid {
  int nodes = 1;
  int devices = 1;  ///< devices of a node that are in use

  bool operator==(const NodeGrid&) const = default;
};

/// One node if `ranks` fit on one, or if it is not known how many devices a node has (0).
/// @throws QuantizationRefused  if they take more than one node and do not fill the last one
NodeGrid node_grid(int ranks, int devices_per_node);

}  // namespace dstune
