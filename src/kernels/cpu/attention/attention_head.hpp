// One head's rows of q, k, v, out and their gradients as fp32 panels (sequence, head_size).
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "kernels/cpu/products/blas.hpp"

namespace dstune::cpu {

/// fp32 matrices are used in place; 16-bit ones are converted into scratch. Heads that share a k
/// and v find the same d_k and d_v, one after the other.
struct HeadPanels {
  Panel q;
  Panel k;
  Panel v;
  Panel out;
  Panel d_out;
  Panel d_q;
  Panel d_k;
  Panel d_v;

  /// Scratch for all eight; 0 for fp32.
  static std::int64_t scratch_elements(const AttentionShape& shape, DType dtype);
};

inline Panel rows_from(Panel panel, std::int64_t first) {
  return {panel.data + first * panel.stride, panel.stride};
}

/// q, k, v, and out to be written. @param index  batch * heads + head
HeadPanels load_head(const Attention& op, std::int64_t index, float* scratch);
/// q, k, v, out and d_out, and d_q, d_k, d_v to be written.
HeadPanels load_head(const AttentionBackward& op, std::int64_t index, float* scratch);

/// These write the panels back, when all in them has been computed.
void store_out(const Attention& op, std::int64_t index, const HeadPanels& head);
void store_d_q(const AttentionBackward& op, std::int64_t index, const HeadPanels& head);
/// To be called once for all heads that share a k and v.
void store_d_k_and_d_v(const AttentionBackward& op, std::int64_t index, const HeadPanels& head);

}  // namespace dstune::cpu
