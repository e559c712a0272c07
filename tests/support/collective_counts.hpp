// Counts of collectives as the tests add them up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/dtype.hpp"
#include "core/device/ledger/collective_kind.hpp"
#include "core/train/zero/layout/quantization_groups.hpp"

namespace dstune::test {

inline CollectiveCount& count_of(CollectiveCounts& counts, CollectiveKind kind) {
  return counts[static_cast<std::size_t>(kind)];
}

inline void add(CollectiveCounts& counts, CollectiveKind kind, std::int64_t elements, Bytes each) {
  CollectiveCount& count = count_of(counts, kind);
  ++count.calls;
  count.elements += static_cast<std::uint64_t>(elements);
  count.bytes += static_cast<Bytes>(elements) * each;
}

/// The gather of `elements`, of all ranks together, as int8.
inline void add_quantized_gather(CollectiveCounts& counts, std::int64_t elements,
                                 std::int64_t ranks) {
  if (elements == 0) return;
  add(counts, CollectiveKind::all_gather, elements, 1);
  add(counts, CollectiveKind::all_gather, ranks * weight_groups(elements / ranks).value(), 4);
}

/// One gradient on several nodes of `devices` ranks: a reduce-scatter, or half a byte an element
/// within the node and a part of that between nodes, with their steps.
inline void add_node_average(CollectiveCounts& counts, const Shape& shape, std::int64_t ranks,
                             std::int64_t devices, DType dtype) {
  std::int64_t numel = 1;
  std::int64_t groups = ranks;
  for (const std::int64_t side : shape) {
    numel *= side;
    groups = side > groups ? side : groups;
  }
  if (shape.size() == 1 || numel % (2 * ranks) != 0) {
    add(counts, CollectiveKind::reduce_scatter, (numel + ranks - 1) / ranks * ranks,
        size_of(dtype));
    return;
  }
  add(counts, CollectiveKind::all_to_all, numel / 2, 1);
  add(counts, CollectiveKind::all_to_all, groups, 4);
  add(counts, CollectiveKind::all_to_all, numel / 2 / devices, 1);
  add(counts, CollectiveKind::all_to_all, groups / devices, 4);
}

}  // namespace dstune::test
