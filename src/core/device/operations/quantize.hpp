// The arithmetic of ZeRO++'s quantisation.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Symmetric quantisation to `bits` = 8 or 4, group by group, as DeepSpeed's kernels do it
/// (docs/decisions/quantisation.md). With levels = 2^(bits-1) and m the largest magnitude of a
/// group:
///
///     step = m / levels, or 1 if m is 0 (or so small that 1 / step overflows)
///     q    = x / step, rounded to nearest even, at most levels - 1
///     x'   = q * step
///
/// so |x - x'| <= step / 2, but up to a whole step for x > (levels - 1/2) step, which becomes
/// levels - 1. Zeros stay zeros. A group with an infinity or a NaN becomes all NaN. With 4 bits the
/// even elements are the low halves of the bytes.
///
/// The order of `out`: `in` is nodes * devices parts of equal size, each of whole groups, one per
/// rank; part node * devices + device goes to place device * nodes + node. With 1 x 1 the order
/// stays.
struct Quantization {
  int bits = 8;
  int nodes = 1;
  int devices = 1;
};

/// The number of int8 elements that hold `numel` quantised values.
constexpr std::int64_t packed_size(std::int64_t numel, int bits) { return numel * bits / 8; }

/// The place, in `out`, of the group that is the `group`-th of `groups` in `in`.
constexpr std::int64_t place_of(std::int64_t group, std::int64_t groups, Quantization how) {
  const std::int64_t per_part = groups / (std::int64_t{how.nodes} * how.devices);
  const std::int64_t part = group / per_part;
  const std::int64_t place = part % how.devices * how.nodes + part / how.devices;
  return place * per_part + group % per_part;
}

/// Quantises groups of equal size, with one step per group.
struct Quantize {
  Tensor in;  ///< any floating-point type, in steps.numel groups
  Quantization how;
  Tensor out;    ///< int8, packed_size(in.numel, how.bits)
  Tensor steps;  ///< fp32
};

/// The inverse of Quantize, in the order of `in`.
struct Dequantize {
  Tensor in;  ///< int8
  int bits = 8;
  Tensor steps;  ///< fp32
  Tensor out;    ///< any floating-point type; its length is a multiple of steps.numel
};

/// `in` is `parts` quantised tensors, one after the other, and `steps` their steps: quantises the
/// sum of the tensors, in groups of the same size.
struct SumQuantized {
  Tensor in;  ///< int8
  int bits = 8;
  Tensor steps;  ///< fp32
  int parts = 1;
  Tensor out;        ///< int8, the length of one part
  Tensor out_steps;  ///< fp32
};

// The largest value of a group is found, then each element takes one product and one rounding.
inline Work work_of(const Quantize& op) {
  return {"quantize", 3 * count(op.in), {op.in}, {op.out, op.steps}};
}
inline Work work_of(const Dequantize& op) {
  return {"dequantize", count(op.out), {op.in, op.steps}, {op.out}};
}
inline Work work_of(const SumQuantized& op) {
  const double summed = count(op.in) * 8 / op.bits;
  return {"sum_quantized",
          2 * summed + 3 * summed / op.parts,
          {op.in, op.steps},
          {op.out, op.out_steps}};
}

}  // namespace dstune
