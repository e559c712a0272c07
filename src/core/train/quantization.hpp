// ZeRO++'s quantisation: its arithmetic, its groups, and where DeepSpeed has none that fit.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>

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

/// Groups of a message of `numel` weights (qwZ): the fewest that are not larger than 8000 elements,
/// each a multiple of 8. None, and DeepSpeed fails, if numel is not a multiple of 8 itself.
std::optional<std::int64_t> weight_groups(std::int64_t numel);

/// How a gradient is reduced with zero_quantized_gradients on more than one node (qgZ).
enum class GradientPath {
  quantized,
  reduce_scatter,  ///< 1-D tensors, and where numel is not a multiple of 2 * ranks
  refused,         ///< DeepSpeed garbles it: the groups cannot be dealt out evenly, or are no
                   ///< multiples of 8 elements
};

/// Groups of a (rows, cols) gradient: as many as its larger side has elements, at least one per
/// rank. cols is 0 for a 1-D tensor.
std::int64_t gradient_groups(std::int64_t rows, std::int64_t cols, int ranks);
GradientPath gradient_path(std::int64_t rows, std::int64_t cols, int ranks);

/// What DeepSpeed stops at with an assertion, or gets wrong without a word.
class QuantizationRefused : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace dstune
