// One head's rows of q, k, v, out and their gradients as fp32 panels (sequence, head_size).
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "kernels/cpu/blas.hpp"

namespace dstune::cpu {

/// fp32 matrices are used in place; 16-bit ones are converted into scratch.
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
HeadPanels load_head(const AttentionShape& shape, std::int64_t index, Matrix qkv, Matrix out,
                     float* scratch);
/// q, k, v, out and d_out, and d_q, d_k, d_v to be written.
HeadPanels load_head_for_backward(const AttentionShape& shape, std::int64_t index, Matrix qkv,
                                  Matrix out, Matrix d_out, Matrix d_qkv, float* scratch);

/// To be called when the panels to be written are.
void store_out(const AttentionShape& shape, std::int64_t index, const HeadPanels& head, Matrix out);
void store_gradients(const AttentionShape& shape, std::int64_t index, const HeadPanels& head,
                     Matrix d_qkv);

}  // namespace dstune::cpu
