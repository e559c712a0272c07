// ZeRO++'s quantisation: its arithmetic.
#pragma once

#include <cstdint>

namespace dstune {

/// Symmetric quantisation to `bits` = 8 or 4, group by group, as DeepSpeed's kernels do it
/// (docs/decisions/quantisation.md). With levels = 2^(bits-1) and m the largest magnitude of a
/// group:
///
///     step = m / levels, or 1 if m is 0 (or so small that 1 / step overflows)
///     q    = x / step, rounded to nearest even, at most levels - 1
///     x'   = q * step
///
/// so |x - x'| <= step / 2, but up to a whole step for x > (levels - 1/2) step, which levels - 1
/// must stand for. Zeros stay zeros. A group with an infinity or a NaN becomes all NaN. With 4 bits
/// the even elements are the low halves of the bytes.
///
/// The order of `out`: `in` is nodes * devices parts of equal size, whole groups, one per rank;
/// part node * devices + device goes to place device * nodes + node. 1 x 1 keeps the order.
struct Quantization {
  int bits = 8;
  int nodes = 1;
  int devices = 1;
};

/// int8 elements that hold `numel` quantised values.
constexpr std::int64_t packed_size(std::int64_t numel, int bits) { return numel * bits / 8; }

}  // namespace dstune
