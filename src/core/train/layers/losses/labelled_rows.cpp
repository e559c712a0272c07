#include "core/train/layers/losses/labelled_rows.hpp"

#include "core/device/operations/fill.hpp"
#include "core/device/operations/rows.hpp"

namespace dstune::layers {

namespace {

/// A row per sequence: `tensor` from element `first` on, without the last position of each.
Matrix without_last(const Workspace& work, const Tensor& tensor, std::int64_t first,
                    std::int64_t cols) {
  const std::int64_t stride = work.sequence_length * cols;
  const Tensor from = tensor.slice(first, tensor.numel - first);
  return {from.data, work.micro_batch, stride - cols, tensor.dtype, stride};
}

Matrix dense(const Workspace& work, const Tensor& tensor) {
  return as_matrix(tensor, work.micro_batch, tensor.numel / work.micro_batch);
}

}  // namespace

Buffer rows_of(const Workspace& work, std::int64_t rows, std::int64_t cols, DType dtype) {
  return make_buffer(*work.device, MemoryCategory::activations, rows * cols, dtype);
}

Buffer take_labelled_rows(const Workspace& work, const Buffer& x, std::int64_t cols) {
  Buffer rows = rows_of(work, labelled_rows(work), cols, work.dtype);
  work.device->run(CopyRows{without_last(work, x.tensor(work.dtype), 0, cols),
                            dense(work, rows.tensor(work.dtype))});
  return rows;
}

Buffer take_labels(const Workspace& work, Tensor tokens) {
  Buffer labels = rows_of(work, labelled_rows(work), 1, DType::int64);
  work.device->run(
      CopyRows{without_last(work, tokens, 1, 1), dense(work, labels.tensor(DType::int64))});
  return labels;
}

Buffer spread_labelled_rows(const Workspace& work, const Buffer& d_rows, std::int64_t cols) {
  Buffer d_x = work.activation(cols);
  work.device->run(FillZero{d_x.tensor(work.dtype)});
  work.device->run(CopyRows{dense(work, d_rows.tensor(work.dtype)),
                            without_last(work, d_x.tensor(work.dtype), 0, cols)});
  return d_x;
}

}  // namespace dstune::layers
