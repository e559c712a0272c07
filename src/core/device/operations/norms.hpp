// Normalisation of rows: layer normalisation (Ba et al. 2016), and normalisation by the root mean
// square (Zhang and Sennrich 2019), as Hugging Face's modules compute them.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// The statistics that LayerNorm saves beside its input: fp32, one per row.
struct LayerNormSaved {
  Tensor mean;
  Tensor rstd;
};

/// out(i, :) = xhat gamma + beta with xhat = (x(i, :) - mean) rstd and rstd = 1 / sqrt(variance +
/// epsilon); mean and variance are those of the row.
struct LayerNorm {
  Matrix x;      ///< (M, n)
  Tensor gamma;  ///< (n)
  Tensor beta;   ///< (n)
  double epsilon = 1e-5;
  LayerNormSaved saved;  ///< written
  Matrix out;            ///< (M, n)
};

/// d_x is the gradient of the loss by x. With g = d_out gamma it is rstd (g - mean(g) - xhat mean(g
/// xhat)).
struct LayerNormBackward {
  Matrix d_out;
  Matrix x;
  Tensor gamma;
  LayerNormSaved saved;
  Matrix d_x;      ///< may be d_out
  Tensor d_gamma;  ///< column sums of d_out xhat
  Tensor d_beta;   ///< column sums of d_out
};

inline Work work_of(const LayerNorm& op) {
  return {"layer_norm",
          7 * count(op.x),
          {op.x, op.gamma, op.beta},
          {op.saved.mean, op.saved.rstd, op.out}};
}
inline Work work_of(const LayerNormBackward& op) {
  return {"layer_norm_backward",
          14 * count(op.x),
          {op.d_out, op.x, op.gamma, op.saved.mean, op.saved.rstd},
          {op.d_x, op.d_gamma, op.d_beta}};
}

/// The tensors that Hugging Face's RMSNorm keeps for backward: its chain of kernels works on an
/// fp32 copy.
struct RmsNormSaved {
  Matrix copy;        ///< fp32 (M, n): x as fp32; x itself where that is fp32
  Tensor rrms;        ///< fp32 (M): 1 / sqrt(mean(x^2) + epsilon)
  Matrix normalised;  ///< (M, n) x rrms, in the type that the weight multiplies: x's, fp32 in Gemma
};

/// out(i, :) = (offset + weight) x(i, :) rrms(i)
///
/// All matrices are dense. A device computes a row at once, or one kernel after the other as eager
/// PyTorch does.
struct RmsNorm {
  Matrix x;
  Tensor weight;  ///< (n)
  double epsilon = 1e-6;
  double offset = 0;   ///< 1 for Gemma, whose chain stays fp32 to its end
  RmsNormSaved saved;  ///< written
  Tensor scratch;      ///< fp32, rms_norm_scratch() elements
  Matrix out;          ///< (M, n)
};

/// With g = d_out (offset + weight): d_x = rrms (g - xhat mean(g xhat)), xhat = x rrms.
struct RmsNormBackward {
  Matrix d_out;
  Tensor weight;
  double offset = 0;
  RmsNormSaved saved;  ///< its contents are lost: eager PyTorch's chain of kernels has room there
  Tensor scratch;      ///< fp32, rms_norm_backward_scratch() elements
  Matrix d_x;          ///< may be d_out
  /// Column sums of d_out xhat; empty: the weight is frozen, and `normalised` has no contents.
  Tensor d_weight;
};

/// The most fp32 elements that PyTorch's chain of kernels holds at a time, beside what the
/// operation names: the squares, unless they fit in `out`.
constexpr std::int64_t rms_norm_scratch(DType dtype, std::int64_t elements) {
  return dtype == DType::fp32 ? 0 : elements;
}
/// The same for backward: the chain holds four of (M, n) when PowBackward has 2 x. d_out and
/// `normalised` are one of these in 16 bits, and two in fp32.
constexpr std::int64_t rms_norm_backward_scratch(DType dtype, std::int64_t elements) {
  return (dtype == DType::fp32 ? 2 : 3) * elements;
}

// The kernels cast to fp32, square, take the mean, multiply by rrms, cast to the type and multiply
// by the weight; these are their reads and writes.
inline Work work_of(const RmsNorm& op) {
  const bool is_fp32 = op.x.dtype == DType::fp32;
  const Operand squares = is_fp32 ? Operand(op.out) : Operand(op.scratch);
  Work work{"rms_norm", 5 * count(op.x), {}, {}};
  if (!is_fp32) {
    work.reads.add({op.x, squares});
    work.writes.add({op.saved.copy, squares});
  }
  work.reads.add({op.saved.copy, squares, op.saved.copy, op.saved.normalised, op.weight});
  work.writes.add({squares, op.saved.rrms, op.saved.normalised, op.out});
  return work;
}
// There are some fourteen kernels: first the weight's gradient and its sum, then fp32 ones, of
// which the last adds up the gradients through the mean and through the product.
inline Work work_of(const RmsNormBackward& op) {
  const Operand copy = op.saved.copy;
  const Operand wide = Operand(op.scratch).of(copy.bytes);
  const bool trains = op.d_weight.numel > 0;
  Work work{
      "rms_norm_backward",
      (trains ? 10 : 8) * count(op.d_out),
      {op.d_out, op.weight, copy, copy.of(4 * copy.bytes), op.saved.rrms, wide.of(6 * copy.bytes)},
      {op.d_x, copy.of(3 * copy.bytes), wide.of(5 * copy.bytes), op.d_x}};
  if (trains) {
    work.reads.add({op.d_out, op.saved.normalised, op.saved.normalised});
    work.writes.add({op.saved.normalised, op.d_weight});
  }
  return work;
}

}  // namespace dstune
