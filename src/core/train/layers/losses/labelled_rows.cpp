#include "core/train/layers/losses/labelled_rows.hpp"

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/losses.hpp"
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

/// For each sequence: copy(its labelled part of `all`, that of `labelled`), each in one piece.
/// @param all  (M, cols), from element `first` on
template <class Copy>
void for_sequences(const Workspace& work, const Tensor& all, std::int64_t first,
                   const Tensor& labelled, std::int64_t cols, Copy copy) {
  std::int64_t done = 0;
  for (const TokenSpan& sequence : work.sequences) {
    const std::int64_t count = (sequence.length - 1) * cols;
    if (count == 0) continue;
    copy(as_matrix(all.slice(sequence.begin * cols + first, count), 1, count),
         as_matrix(labelled.slice(done, count), 1, count));
    done += count;
  }
}

void take(const Workspace& work, const Tensor& all, std::int64_t first, const Tensor& labelled,
          std::int64_t cols) {
  Device& device = *work.device;
  if (work.sequences.empty()) {
    device.run(CopyRows{without_last(work, all, first, cols), dense(work, labelled)});
    return;
  }
  for_sequences(work, all, first, labelled, cols, [&](const Matrix& own, const Matrix& packed) {
    device.run(CopyRows{own, packed});
  });
}

}  // namespace

std::int64_t labelled_rows(const Workspace& work) {
  if (work.sequences.empty()) return work.micro_batch * (work.sequence_length - 1);
  std::int64_t rows = 0;
  for (const TokenSpan& sequence : work.sequences) rows += sequence.length - 1;
  return rows;
}

Buffer rows_of(const Workspace& work, std::int64_t rows, std::int64_t cols, DType dtype) {
  return make_buffer(*work.device, MemoryCategory::activations, rows * cols, dtype);
}

// Sequences of one token have no next ones: so padding gets no labels.
Buffer next_tokens(const Workspace& work, Tensor tokens) {
  Device& device = *work.device;
  Buffer buffer = rows_of(work, work.rows(), 1, DType::int64);
  const Tensor labels = buffer.tensor(DType::int64);
  const auto label = [&](const TokenSpan& part, std::int64_t sequence) {
    device.run(NextTokens{.tokens = tokens.slice(part.begin, part.length),
                          .sequence = sequence,
                          .labels = labels.slice(part.begin, part.length)});
  };
  const TokenSpan all{0, work.rows()};
  if (work.sequences.empty()) {
    label(all, work.sequence_length);
    return buffer;
  }
  if (work.is_padded()) label(all, 1);
  for (const TokenSpan& sequence : work.sequences) label(sequence, sequence.length);
  return buffer;
}

Buffer take_labelled_rows(const Workspace& work, const Buffer& x, std::int64_t cols) {
  Buffer rows = rows_of(work, labelled_rows(work), cols, work.dtype);
  take(work, x.tensor(work.dtype), 0, rows.tensor(work.dtype), cols);
  return rows;
}

Buffer take_labels(const Workspace& work, Tensor tokens) {
  Buffer labels = rows_of(work, labelled_rows(work), 1, DType::int64);
  take(work, tokens, 1, labels.tensor(DType::int64), 1);
  return labels;
}

Buffer spread_labelled_rows(const Workspace& work, const Buffer& d_rows, std::int64_t cols) {
  Device& device = *work.device;
  Buffer d_x = work.activation(cols);
  const Tensor all = d_x.tensor(work.dtype);
  const Tensor labelled = d_rows.tensor(work.dtype);
  device.run(FillZero{all});
  if (work.sequences.empty()) {
    device.run(CopyRows{dense(work, labelled), without_last(work, all, 0, cols)});
    return d_x;
  }
  for_sequences(work, all, 0, labelled, cols, [&](const Matrix& own, const Matrix& packed) {
    device.run(CopyRows{packed, own});
  });
  return d_x;
}

}  // namespace dstune::layers
