// Layer normalisation (Ba et al. 2016).
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// The statistics that LayerNorm saves beside its input: fp32, one per row.
struct LayerNormSaved {
  Tensor mean;
  Tensor rstd;
};

/// out(i, :) = xhat gamma + beta with xhat = (x(i, :) - mean) rstd and rstd = 1 / sqrt(variance +
/// epsilon), both of the row.
struct LayerNorm {
  Matrix x;      ///< (M, n)
  Tensor gamma;  ///< (n)
  Tensor beta;   ///< (n)
  double epsilon = 1e-5;
  LayerNormSaved saved;  ///< written
  Matrix out;            ///< (M, n)
};

/// d_x is the gradient of the loss by x; with g = d_out gamma it is rstd (g - mean(g) - xhat mean(g
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

}  // namespace dstune
