#include "kernels/cpu/attention/attention_head.hpp"

#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// Where a head's panels lie, of q and out, or of k and v.
class Place {
 public:
  /// @param heads  of the matrices: index counts those of q
  Place(const AttentionShape& shape, std::int64_t heads, std::int64_t index)
      : shape_(shape),
        first_row_(index / shape.heads * shape.sequence),
        head_(index % shape.heads / (shape.heads / heads)) {}

  /// The panel in place (fp32), or `slot` of the scratch without contents.
  Panel place(const Heads& heads, float* scratch, std::int64_t slot) const {
    if (heads.matrix.dtype == DType::fp32) {
      return {row_of<float>(heads, 0), heads.matrix.stride};
    }
    return {scratch + slot * shape_.sequence * shape_.head_size, shape_.head_size};
  }

  Panel load(const Heads& heads, float* scratch, std::int64_t slot) const {
    const Panel panel = place(heads, scratch, slot);
    if (heads.matrix.dtype == DType::fp32) return panel;
    with_type(heads.matrix.dtype, [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < shape_.sequence; ++i) {
        convert(row_of<T>(heads, i), rows_from(panel, i).data, shape_.head_size);
      }
    });
    return panel;
  }

  void store(Panel panel, const Heads& heads) const {
    if (heads.matrix.dtype == DType::fp32) return;
    with_type(heads.matrix.dtype, [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < shape_.sequence; ++i) {
        convert(rows_from(panel, i).data, row_of<T>(heads, i), shape_.head_size);
      }
    });
  }

 private:
  template <class T>
  T* row_of(const Heads& heads, std::int64_t i) const {
    return row<T>(heads.matrix, first_row_ + i) + head_ * heads.stride;
  }

  const AttentionShape& shape_;
  std::int64_t first_row_;
  std::int64_t head_;
};

Place place_of_query(const AttentionShape& shape, std::int64_t index) {
  return {shape, shape.heads, index};
}

Place place_of_key(const AttentionShape& shape, std::int64_t index) {
  return {shape, shape.kv_heads, index};
}

/// The columns of `out` or its gradient as heads.
Heads side_by_side(const Matrix& matrix, const AttentionShape& shape) {
  return {matrix, shape.head_size};
}

template <class Operation>
HeadPanels load_inputs(const Operation& op, std::int64_t index, float* scratch) {
  HeadPanels panels;
  panels.q = place_of_query(op.shape, index).load(op.q, scratch, 0);
  panels.k = place_of_key(op.shape, index).load(op.k, scratch, 1);
  panels.v = place_of_key(op.shape, index).load(op.v, scratch, 2);
  return panels;
}

}  // namespace

std::int64_t HeadPanels::scratch_elements(const AttentionShape& shape, DType dtype) {
  return dtype == DType::fp32 ? 0 : 8 * shape.sequence * shape.head_size;
}

HeadPanels load_head(const Attention& op, std::int64_t index, float* scratch) {
  HeadPanels panels = load_inputs(op, index, scratch);
  panels.out = place_of_query(op.shape, index).place(side_by_side(op.out, op.shape), scratch, 3);
  return panels;
}

HeadPanels load_head(const AttentionBackward& op, std::int64_t index, float* scratch) {
  const Place query = place_of_query(op.shape, index);
  const Place key = place_of_key(op.shape, index);
  HeadPanels panels = load_inputs(op, index, scratch);
  panels.out = query.load(side_by_side(op.out, op.shape), scratch, 3);
  panels.d_out = query.load(side_by_side(op.d_out, op.shape), scratch, 4);
  panels.d_q = query.place(op.d_q, scratch, 5);
  panels.d_k = key.place(op.d_k, scratch, 6);
  panels.d_v = key.place(op.d_v, scratch, 7);
  return panels;
}

void store_out(const Attention& op, std::int64_t index, const HeadPanels& head) {
  place_of_query(op.shape, index).store(head.out, side_by_side(op.out, op.shape));
}

void store_d_q(const AttentionBackward& op, std::int64_t index, const HeadPanels& head) {
  place_of_query(op.shape, index).store(head.d_q, op.d_q);
}

void store_d_k_and_d_v(const AttentionBackward& op, std::int64_t index, const HeadPanels& head) {
  const Place place = place_of_key(op.shape, index);
  place.store(head.d_k, op.d_k);
  place.store(head.d_v, op.d_v);
}

}  // namespace dstune::cpu
