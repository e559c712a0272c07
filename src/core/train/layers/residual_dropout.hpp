// Dropout that keeps its mask; nothing at all where the probability is 0.
#pragma once

#include <cstdint>

#include "core/device/operations/dropout.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// @param[out] mask  one byte per element, empty if `probability` is 0
/// @returns x itself if `probability` is 0
inline Buffer drop(const Workspace& work, double probability, std::uint64_t seed, Buffer x,
                   Buffer& mask) {
  if (probability == 0) return x;
  const std::int64_t columns = x.tensor(work.dtype).numel / work.rows();
  mask = work.mask(columns);
  Buffer y = work.activation(columns);
  work.device->run(Dropout{.in = x.tensor(work.dtype),
                           .probability = probability,
                           .seed = seed,
                           .mask = mask.tensor(DType::int8),
                           .out = y.tensor(work.dtype)});
  return y;
}

/// Frees the mask.
inline Buffer drop_backward(const Workspace& work, double probability, const Buffer& d_y,
                            Buffer& mask) {
  Buffer d_x = work.activation(d_y.tensor(work.dtype).numel / work.rows());
  work.device->run(DropoutBackward{.d_out = d_y.tensor(work.dtype),
                                   .probability = probability,
                                   .mask = mask.tensor(DType::int8),
                                   .d_in = d_x.tensor(work.dtype)});
  mask.reset();
  return d_x;
}

}  // namespace dstune::layers
