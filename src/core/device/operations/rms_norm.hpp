// Root mean square normalisation (Zhang and Sennrich 2019), as Hugging Face's modules compute it.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// What Hugging Face's RMSNorm keeps for backward: its chain of kernels works on an fp32 copy.
struct RmsNormSaved {
  Matrix copy;        ///< fp32 (M, n): x, or x itself where that is fp32
  Tensor rrms;        ///< fp32 (M): 1 / sqrt(mean(x^2) + epsilon)
  Matrix normalised;  ///< (M, n) x rrms, in the type that the weight multiplies
};

/// out(i, :) = (offset + weight) x(i, :) rrms(i)
struct RmsNorm {
  Matrix x;
  Tensor weight;  ///< (n)
  double epsilon = 1e-6;
  double offset = 0;   ///< 1 for Gemma, whose chain stays fp32 to its end
  RmsNormSaved saved;  ///< written
  Matrix out;          ///< (M, n)
};

/// With g = d_out (offset + weight): d_x = rrms (g - xhat mean(g xhat)), xhat = x rrms.
struct RmsNormBackward {
  Matrix d_out;
  Tensor weight;
  double offset = 0;
  RmsNormSaved saved;
  Matrix d_x;       ///< may be d_out
  Tensor d_weight;  ///< column sums of d_out xhat
};

// Six kernels forward: to fp32, square, mean, times, to the type, times the weight.
inline Work work_of(const RmsNorm& op) {
  return {"rms_norm",
          5 * count(op.x),
          {op.x, op.saved.copy, op.saved.copy, op.saved.normalised, op.weight},
          {op.saved.copy, op.saved.rrms, op.saved.normalised, op.out}};
}
inline Work work_of(const RmsNormBackward& op) {
  return {"rms_norm_backward",
          10 * count(op.d_out),
          {op.d_out, op.saved.normalised, op.saved.copy, op.saved.rrms, op.weight},
          {op.d_x, op.d_weight}};
}

}  // namespace dstune
