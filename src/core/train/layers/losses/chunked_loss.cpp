#include "core/train/layers/losses/chunked_loss.hpp"

#include <algorithm>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/train/layers/losses/labelled_rows.hpp"
#include "core/train/layers/losses/logits_chunk.hpp"

namespace dstune::layers {

namespace {

// In place, as autograd's: it holds the only reference.
void accumulate(const Workspace& work, Buffer& sum, Buffer part) {
  if (sum) {
    work.device->run(Add{sum.tensor(work.dtype), part.tensor(work.dtype)});
  } else {
    sum = std::move(part);
  }
}

/// Likewise, of gradients that are views, to which autograd never adds: the first sum is a third
/// tensor beside the two. It is held for that moment; what moves is the same.
class SumOfViews {
 public:
  void add(const Workspace& work, Buffer part) {
    Buffer third;
    if (parts_ == 1) third = work.gradient(sum_.tensor(work.dtype).numel);
    accumulate(work, sum_, std::move(part));
    ++parts_;
  }
  Buffer take() { return std::move(sum_); }

 private:
  Buffer sum_;
  int parts_ = 0;
};

// The gradient of a slice of all rows is one of all rows.
Buffer widen(const Workspace& work, const Buffer& d_chunk, std::int64_t first, std::int64_t numel) {
  Buffer d_rows = rows_of(work, numel, 1, work.dtype);
  const Tensor all = d_rows.tensor(work.dtype);
  const Tensor chunk = d_chunk.tensor(work.dtype);
  work.device->run(FillZero{all});
  work.device->run(Copy{chunk, all.slice(first, chunk.numel)});
  return d_rows;
}

/// What indexing does with the rows that count: here, all of them.
Buffer copy_of(const Workspace& work, const Buffer& rows) {
  const Tensor from = rows.tensor(work.dtype);
  Buffer copy = rows_of(work, from.numel, 1, work.dtype);
  work.device->run(Copy{from, copy.tensor(work.dtype)});
  return copy;
}

LogitsChunk chunk_at(const Workspace& work, ModuleHooks& hooks, const Projection& head,
                     const Tensor& rows, const Tensor& labels, std::int64_t first) {
  const std::int64_t count = std::min(ChunkedLoss::kChunk, labels.numel - first);
  return {work,
          hooks,
          head,
          rows.slice(first * head.size, count * head.size),
          labels.slice(first, count),
          static_cast<double>(count) / static_cast<double>(labels.numel)};
}

}  // namespace

void ChunkedLoss::forward(const Workspace& work, ModuleHooks& hooks, const Projection& head,
                          Buffer x, Tensor tokens, Tensor loss) {
  rows_ = take_labelled_rows(work, x, head.size);
  if (work.micro_batch > 1) rows_ = copy_of(work, rows_);  // one sequence is a view until then
  labels_ = take_labels(work, tokens);
  const Tensor rows = rows_.tensor(work.dtype);
  const Tensor labels = labels_.tensor(DType::int64);
  for (std::int64_t first = 0; first < labels.numel; first += kChunk) {
    chunk_at(work, hooks, head, rows, labels, first).forward(loss);
    work.device->tick();
  }
}

Buffer ChunkedLoss::backward(const Workspace& work, ModuleHooks& hooks, const Projection& head,
                             double factor, const WeightGradient& take_weight) {
  const Tensor rows = rows_.tensor(work.dtype);
  const Tensor labels = labels_.tensor(DType::int64);
  Buffer d_rows;
  SumOfViews d_weight;
  for (std::int64_t first = (labels.numel - 1) / kChunk * kChunk; first >= 0; first -= kChunk) {
    ChunkGradients part = chunk_at(work, hooks, head, rows, labels, first).backward(factor);
    if (part.weight) d_weight.add(work, std::move(part.weight));
    Buffer widened = widen(work, part.rows, first * head.size, rows.numel);
    part.rows.reset();
    accumulate(work, d_rows, std::move(widened));
    work.device->tick();
  }
  rows_.reset();
  labels_.reset();
  take_weight(d_weight.take());
  d_rows = copy_of(work, d_rows);
  return spread_labelled_rows(work, d_rows, head.size);
}

}  // namespace dstune::layers
