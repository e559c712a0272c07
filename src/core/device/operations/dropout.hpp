// Dropout that keeps its mask.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out = in * mask / (1 - probability)
struct Dropout {
  Tensor in;
  double probability = 0;  ///< < 1
  std::uint64_t seed = 0;  ///< the mask depends on it and the index alone
  Tensor mask;             ///< written: int8, 1 per element that is kept, else 0
  Tensor out;
};

/// d_in = d_out * mask / (1 - probability)
struct DropoutBackward {
  Tensor d_out;
  double probability = 0;
  Tensor mask;
  Tensor d_in;  ///< may be d_out
};

inline Work work_of(const Dropout& op) {
  return {"dropout", 2 * count(op.in), {op.in}, {op.mask, op.out}};
}
inline Work work_of(const DropoutBackward& op) {
  return {"dropout_backward", 2 * count(op.d_out), {op.d_out, op.mask}, {op.d_in}};
}

}  // namespace dstune
