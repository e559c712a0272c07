#include "core/train/nn/losses/labelled_rows.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/rows.hpp"

namespace dstune::nn {
namespace {

/// A matrix with one row per sequence: `tensor` from element `first` on, without the last position
/// of each sequence.
Matrix without_last(const BatchContext& context, const Tensor& tensor, std::int64_t first,
                    std::int64_t cols) {
  const std::int64_t stride = context.sequence_length * cols;
  const Tensor from = tensor.slice(first, tensor.numel - first);
  return {from.data, context.size, stride - cols, tensor.dtype, stride};
}

Matrix dense(const BatchContext& context, const Tensor& tensor) {
  return as_matrix(tensor, context.size, tensor.numel / context.size);
}

/// Calls copy(a part of `all` that has labels, its place in `labelled`) for all such parts.
/// @param all  (M, cols); element `first` is taken as its start
template <class Copy>
void for_labelled(const BatchContext& context, const Tensor& all, std::int64_t first,
                  const Tensor& labelled, std::int64_t cols, Copy copy) {
  if (context.sequences.empty()) {
    copy(without_last(context, all, first, cols), dense(context, labelled));
    return;
  }
  std::int64_t done = 0;
  for (const TokenSpan& sequence : context.sequences) {
    const std::int64_t count = (sequence.length - 1) * cols;
    if (count == 0) continue;
    copy(as_matrix(all.slice(sequence.begin * cols + first, count), 1, count),
         as_matrix(labelled.slice(done, count), 1, count));
    done += count;
  }
}

// PyTorch takes all of them by one index.
void take(const Tape& on, const Tensor& all, std::int64_t first, const Tensor& labelled,
          std::int64_t cols) {
  on.count_operators(1);
  for_labelled(on.context(), all, first, labelled, cols,
               [&](const Matrix& own, const Matrix& packed) {
                 on.run(CopyRows{own, packed}, 0);
               });
}

}  // namespace

std::int64_t labelled_rows(const BatchContext& context) {
  if (context.sequences.empty()) return context.size * (context.sequence_length - 1);
  std::int64_t rows = 0;
  for (const TokenSpan& sequence : context.sequences) rows += sequence.length - 1;
  return rows;
}

// A sequence of one token has no next token: padding is labelled as such sequences, and gets no
// labels.
Value next_tokens(Tape& on, Tensor tokens) {
  const BatchContext& context = on.context();
  Value next = new_value(on.device(), DType::int64, context.rows(), 1);
  const Tensor labels = next.tensor();
  const auto label = [&](const TokenSpan& part, std::int64_t sequence) {
    on.run(NextTokens{.tokens = tokens.slice(part.begin, part.length),
                      .sequence = sequence,
                      .labels = labels.slice(part.begin, part.length)});
  };
  const TokenSpan all{0, context.rows()};
  if (context.sequences.empty()) {
    label(all, context.sequence_length);
    return next;
  }
  if (context.is_padded()) label(all, 1);
  for (const TokenSpan& sequence : context.sequences) label(sequence, sequence.length);
  return next;
}

Value take_labelled_rows(Tape& on, const Value& x) {
  const std::int64_t cols = x.matrix.cols;
  Value rows = new_value(on.device(), x.matrix.dtype, labelled_rows(on.context()), cols);
  take(on, x.tensor(), 0, rows.tensor(), cols);
  if (!on.records(x.needs_gradient())) return rows;
  return on.record(std::move(rows), [node = x.node](Tape& back, const Value& d) {
    const std::int64_t width = d.matrix.cols;
    Value d_x = new_value(back.device(), d.matrix.dtype, back.context().rows(), width);
    back.run(FillZero{d_x.tensor()});
    back.count_operators(1);
    for_labelled(back.context(), d_x.tensor(), 0, d.tensor(), width,
                 [&](const Matrix& own, const Matrix& packed) {
                   back.run(CopyRows{packed, own}, 0);
                 });
    back.give(node, std::move(d_x));
  });
}

Value take_labels(Tape& on, Tensor tokens) {
  Value labels = new_value(on.device(), DType::int64, labelled_rows(on.context()), 1);
  take(on, tokens, 1, labels.tensor(), 1);
  return labels;
}

}  // namespace dstune::nn
