// How far queries are from keys, as rows of a table of relative positions.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out(i, j) = b(i - j), as DeBERTa's make_log_bucket_position() has it: b(d) = d up to the middle
/// m = buckets / 2, and beyond it sign(d) (ceil(log(|d| / m) / log((most - 1) / m) (m - 1)) + m),
/// in fp32. Without buckets b(d) = d.
struct FillDistances {
  std::int64_t sequence = 0;
  std::int64_t buckets = 0;  ///< 0: none
  std::int64_t most = 0;     ///< distance; beyond it they go on alike
  Tensor out;                ///< int64 (sequence, sequence)
};

/// out = sign * in + span, within [0, 2 span).
struct ShiftDistances {
  Tensor in;  ///< int64
  std::int64_t sign = 1;
  std::int64_t span = 0;
  Tensor out;  ///< int64, as many
};

inline Work work_of(const FillDistances& op) { return {"fill_distances", 0, {}, {op.out}}; }
inline Work work_of(const ShiftDistances& op) { return {"shift_distances", 0, {op.in}, {op.out}}; }

}  // namespace dstune
