#include "kernels/cpu/attention_head.hpp"

#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// Where a head's panels lie: its rows of a matrix, and its columns of q, k or v (0, 1, 2).
class Head {
 public:
  Head(const AttentionShape& shape, std::int64_t index)
      : shape_(shape),
        first_row_(index / shape.heads * shape.sequence),
        first_col_(index % shape.heads * shape.head_size) {}

  /// The panel in place (fp32), or `slot` of the scratch without contents.
  Panel place(Matrix matrix, std::int64_t part, float* scratch, std::int64_t slot) const {
    if (matrix.dtype == DType::fp32) {
      return {row<float>(matrix, first_row_) + column(part), matrix.stride};
    }
    return {scratch + slot * shape_.sequence * shape_.head_size, shape_.head_size};
  }

  Panel load(Matrix matrix, std::int64_t part, float* scratch, std::int64_t slot) const {
    const Panel panel = place(matrix, part, scratch, slot);
    if (matrix.dtype == DType::fp32) return panel;
    with_type(matrix.dtype, [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < shape_.sequence; ++i) {
        convert(row<T>(matrix, first_row_ + i) + column(part), rows_from(panel, i).data,
                shape_.head_size);
      }
    });
    return panel;
  }

  void store(Panel panel, Matrix matrix, std::int64_t part) const {
    if (matrix.dtype == DType::fp32) return;
    with_type(matrix.dtype, [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < shape_.sequence; ++i) {
        convert(rows_from(panel, i).data, row<T>(matrix, first_row_ + i) + column(part),
                shape_.head_size);
      }
    });
  }

 private:
  std::int64_t column(std::int64_t part) const {
    return part * shape_.heads * shape_.head_size + first_col_;
  }

  const AttentionShape& shape_;
  std::int64_t first_row_;
  std::int64_t first_col_;
};

}  // namespace

std::int64_t HeadPanels::scratch_elements(const AttentionShape& shape, DType dtype) {
  return dtype == DType::fp32 ? 0 : 8 * shape.sequence * shape.head_size;
}

HeadPanels load_head(const AttentionShape& shape, std::int64_t index, Matrix qkv, Matrix out,
                     float* scratch) {
  const Head head(shape, index);
  HeadPanels panels;
  panels.q = head.load(qkv, 0, scratch, 0);
  panels.k = head.load(qkv, 1, scratch, 1);
  panels.v = head.load(qkv, 2, scratch, 2);
  panels.out = head.place(out, 0, scratch, 3);
  return panels;
}

HeadPanels load_head_for_backward(const AttentionShape& shape, std::int64_t index, Matrix qkv,
                                  Matrix out, Matrix d_out, Matrix d_qkv, float* scratch) {
  const Head head(shape, index);
  HeadPanels panels = load_head(shape, index, qkv, out, scratch);
  panels.out = head.load(out, 0, scratch, 3);
  panels.d_out = head.load(d_out, 0, scratch, 4);
  panels.d_q = head.place(d_qkv, 0, scratch, 5);
  panels.d_k = head.place(d_qkv, 1, scratch, 6);
  panels.d_v = head.place(d_qkv, 2, scratch, 7);
  return panels;
}

void store_out(const AttentionShape& shape, std::int64_t index, const HeadPanels& head,
               Matrix out) {
  Head(shape, index).store(head.out, out, 0);
}

void store_gradients(const AttentionShape& shape, std::int64_t index, const HeadPanels& head,
                     Matrix d_qkv) {
  const Head place(shape, index);
  place.store(head.d_q, d_qkv, 0);
  place.store(head.d_k, d_qkv, 1);
  place.store(head.d_v, d_qkv, 2);
}

}  // namespace dstune::cpu
