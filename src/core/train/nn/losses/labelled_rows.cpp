#include "core/train/nn/losses/labelled_rows.hpp"

#include <utility>

#include "core/device/operations/fill.hpp"
#include "core/device/operations/nll_loss.hpp"
#include "core/device/operations/rows.hpp"

namespace dstune::nn {
namespace {

using layers::Workspace;

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

/// copy(a part of `all` that has labels, its place in `labelled`), until all are there.
/// @param all  (M, cols), from element `first` on
template <class Copy>
void for_labelled(const Workspace& work, const Tensor& all, std::int64_t first,
                  const Tensor& labelled, std::int64_t cols, Copy copy) {
  if (work.sequences.empty()) {
    copy(without_last(work, all, first, cols), dense(work, labelled));
    return;
  }
  std::int64_t done = 0;
  for (const TokenSpan& sequence : work.sequences) {
    const std::int64_t count = (sequence.length - 1) * cols;
    if (count == 0) continue;
    copy(as_matrix(all.slice(sequence.begin * cols + first, count), 1, count),
         as_matrix(labelled.slice(done, count), 1, count));
    done += count;
  }
}

void take(const Tape& on, const Tensor& all, std::int64_t first, const Tensor& labelled,
          std::int64_t cols) {
  for_labelled(on.work(), all, first, labelled, cols, [&](const Matrix& own, const Matrix& packed) {
    on.device().run(CopyRows{own, packed});
  });
}

}  // namespace

std::int64_t labelled_rows(const Workspace& work) {
  if (work.sequences.empty()) return work.micro_batch * (work.sequence_length - 1);
  std::int64_t rows = 0;
  for (const TokenSpan& sequence : work.sequences) rows += sequence.length - 1;
  return rows;
}

// Sequences of one token have no next ones: so padding gets no labels.
Value next_tokens(Tape& on, Tensor tokens) {
  const Workspace& work = on.work();
  Value next = new_value(on.device(), DType::int64, work.rows(), 1);
  const Tensor labels = next.tensor();
  const auto label = [&](const TokenSpan& part, std::int64_t sequence) {
    on.device().run(NextTokens{.tokens = tokens.slice(part.begin, part.length),
                               .sequence = sequence,
                               .labels = labels.slice(part.begin, part.length)});
  };
  const TokenSpan all{0, work.rows()};
  if (work.sequences.empty()) {
    label(all, work.sequence_length);
    return next;
  }
  if (work.is_padded()) label(all, 1);
  for (const TokenSpan& sequence : work.sequences) label(sequence, sequence.length);
  return next;
}

Value take_labelled_rows(Tape& on, const Value& x) {
  const std::int64_t cols = x.matrix.cols;
  Value rows = new_value(on.device(), x.matrix.dtype, labelled_rows(on.work()), cols);
  take(on, x.tensor(), 0, rows.tensor(), cols);
  if (!on.records(x.needs_gradient())) return rows;
  return on.record(std::move(rows), [node = x.node](Tape& back, const Value& d) {
    const std::int64_t width = d.matrix.cols;
    Value d_x = new_value(back.device(), d.matrix.dtype, back.work().rows(), width);
    back.device().run(FillZero{d_x.tensor()});
    for_labelled(back.work(), d_x.tensor(), 0, d.tensor(), width,
                 [&](const Matrix& own, const Matrix& packed) {
                   back.device().run(CopyRows{packed, own});
                 });
    back.give(node, std::move(d_x));
  });
}

Value take_labels(Tape& on, Tensor tokens) {
  Value labels = new_value(on.device(), DType::int64, labelled_rows(on.work()), 1);
  take(on, tokens, 1, labels.tensor(), 1);
  return labels;
}

}  // namespace dstune::nn
