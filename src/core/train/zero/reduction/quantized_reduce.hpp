// Stage 3 with zero_quantized_gradients (qgZ): gradients are averaged in two hops of int4.
#pragma once

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"

namespace dstune {

/// There are nodes * devices ranks, node by node: `intra` is the group of this rank's node, and
/// `inter` is the group of the ranks at the same place on the other nodes
/// (docs/decisions/quantisation.md).
///
/// Collectives for a gradient of n elements in G = gradient_groups() groups, L = intra.size():
///
/// | hop | collective | type | elements X | bytes X |
/// |---|---|---|---|---|
/// | within the node | all_to_all | int8 | n / 2 | n / 2 |
/// | | all_to_all | fp32 | G | 4 G |
/// | between nodes | all_to_all | int8 | n / 2 L | n / 2 L |
/// | | all_to_all | fp32 | G / L | 4 G / L |
///
/// Temporaries, all until the call returns: what is sent and what is received in both hops, n (1 +
/// 1/L) + 8 G (1 + 1/L) bytes, and the n / L elements that are dequantised after the second hop.
class QuantizedReduce {
 public:
  QuantizedReduce(Device& device, Collectives& intra, Collectives& inter)
      : device_(device), intra_(intra), inter_(inter) {}

  int ranks() const { return intra_.size() * inter_.size(); }

  /// Averages on the current stream and returns this rank's part of the average over all ranks:
  /// `gradient.numel / ranks()` elements of its type, the part of rank inter.rank() * intra.size()
  /// + intra.rank(). The path of the gradient must be GradientPath::quantized.
  /// @param groups  gradient_groups() of its shape
  Buffer average(Tensor gradient, std::int64_t groups) const;

 private:
  struct Packed;
  Packed make(std::int64_t elements, std::int64_t groups) const;
  Packed exchange(const Packed& own, Collectives& group) const;
  Buffer sum_of_nodes(const Packed& received, std::int64_t elements, DType dtype) const;

  Device& device_;
  Collectives& intra_;
  Collectives& inter_;
};

}  // namespace dstune
