#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/nn/losses/causal_loss.hpp"
#include "core/train/nn/losses/labelled_rows.hpp"

namespace dstune::nn {
namespace {

// Numbers that TRL's kernel keeps of each row: it also keeps what it logs, which the loss does not
// need.
constexpr std::int64_t kNumbersOfARow = 7;

struct Range {
  std::int64_t first;
  std::int64_t count;

  Tensor of(const Tensor& tensor) const { return tensor.slice(first, count); }
  /// The range as rows of `cols` elements.
  Matrix of(const Tensor& tensor, std::int64_t cols) const {
    return as_matrix(tensor.slice(first * cols, count * cols), count, cols);
  }
};

/// The one buffer for all tiles of `rows`.
Value tile_buffer(const Tape& on, const LogitsTile& size, const Value& rows) {
  return new_value(on.device(), rows.matrix.dtype, std::min(rows.matrix.rows, size.rows),
                   size.words);
}

/// Calls f(rows, words, logits) for every tile of `size`, which is made in `buffer`.
template <class F>
void for_tiles(const Tape& on, const LogitsTile& size, const Value& buffer, const LmHead& head,
               const Value& x, F f) {
  const Tensor weight = on.hooks().parameter(head.product.weight);
  for (std::int64_t i = 0; i < x.matrix.rows; i += size.rows) {
    const Range rows{i, std::min(size.rows, x.matrix.rows - i)};
    for (std::int64_t j = 0; j < head.vocab_size(); j += size.words) {
      const Range words{j, std::min(size.words, head.vocab_size() - j)};
      Matrix logits = buffer.matrix;
      logits.rows = rows.count;
      logits.cols = words.count;
      on.run(Gemm{.transpose_b = Transpose::yes,
                  .a = rows.of(x.tensor(), head.size()),
                  .b = words.of(weight, head.size()),
                  .c = logits});
      f(rows, words, logits);
      on.device().tick();
    }
  }
}

Matrix columns(const Matrix& matrix, const Range& range) {
  auto* const data = static_cast<float*>(matrix.data) + range.first;
  return {data, matrix.rows, range.count, matrix.dtype, matrix.stride};
}

/// A sum in fp32 that is rounded to the model dtype at its end.
struct Sum {
  Buffer fp32;

  Sum(Device& device, MemoryCategory category, std::int64_t numel)
      : fp32(make_buffer(device, category, numel, DType::fp32)) {
    device.run(FillZero{tensor()});
  }
  Tensor tensor() const { return fp32.tensor(DType::fp32); }
};

/// The sum in the model dtype; the sum itself where that is fp32.
Buffer rounded(const Tape& on, Sum& sum, MemoryCategory category) {
  const DType dtype = on.context().dtype;
  if (dtype == DType::fp32) return std::move(sum.fp32);
  Buffer result = make_buffer(on.device(), category, sum.tensor().numel, dtype);
  on.run(Cast{sum.tensor(), result.tensor(dtype)});
  return result;
}

/// The values that forward saves for _ChunkedLogProbFunction.backward.
struct SavedRows {
  Saved x, labels, log_sums;
  Saved entropy;  ///< for the entropy's gradient, which never comes
};

/// Gives both gradients of row_factor * the sum of the rows' losses.
void give_gradients(Tape& back, const LmHead& head, const LogitsTile& size, SavedRows& saved,
                    double row_factor, std::size_t node) {
  Device& device = back.device();
  const Value x = saved.x.take(back);
  const Value labels = saved.labels.take(back);
  const Value log_sums = saved.log_sums.take(back);
  Sum of_rows(device, MemoryCategory::activations, x.numel());
  std::optional<Sum> of_weight;
  if (head.is_trainable(back)) {
    of_weight.emplace(device, MemoryCategory::gradients, head.vocab_size() * head.size());
  }
  back.hooks().fetch(head.product.module);
  const Tensor weight = back.hooks().parameter(head.product.weight);
  const Value tile = tile_buffer(back, size, x);  // lives until both gradients are rounded
  for_tiles(back, size, tile, head, x,
            [&](const Range& rows, const Range& words, const Matrix& logits) {
              back.run(LogitsGradient{logits, rows.of(labels.tensor()), words.first,
                                      rows.of(log_sums.tensor()), row_factor, head.softcap});
              back.run(Gemm{.a = logits,
                            .b = words.of(weight, head.size()),
                            .beta = 1,
                            .c = rows.of(of_rows.tensor(), head.size())});
              if (!of_weight) return;
              back.run(Gemm{.transpose_a = Transpose::yes,
                            .a = logits,
                            .b = rows.of(x.tensor(), head.size()),
                            .beta = 1,
                            .c = words.of(of_weight->tensor(), head.size())});
            });
  back.hooks().release(head.product.module);
  back.give(node, value_of(rounded(back, of_rows, MemoryCategory::activations), x.matrix.dtype,
                           x.matrix.rows, x.matrix.cols));
  if (!of_weight) return;
  back.give(head.product.weight, rounded(back, *of_weight, MemoryCategory::gradients), Memory::own);
}

}  // namespace

Value tiled_loss(Tape& on, const LmHead& head, const Value& hidden, const StepInput& input,
                 const double& factor, LogitsTile size) {
  Device& device = on.device();
  const Value x = take_labelled_rows(on, hidden);
  const Value labels = take_labels(on, input.tokens);
  const std::int64_t count = x.matrix.rows;
  const Value numbers = new_value(device, DType::fp32, kNumbersOfARow, count);
  const Tensor of_numbers = numbers.tensor();
  on.run(FillZero{of_numbers});
  on.run(FillConstant{of_numbers.slice(kLargest * count, count),
                      -std::numeric_limits<double>::infinity()});
  const Matrix statistics =
      as_matrix(of_numbers.slice(0, kRowStatistics * count), kRowStatistics, count);

  on.hooks().fetch(head.product.module);
  const Value tile = tile_buffer(on, size, x);
  for_tiles(on, size, tile, head, x,
            [&](const Range& rows, const Range& words, const Matrix& logits) {
              on.run(FoldLogits{logits, rows.of(labels.tensor()), words.first,
                                columns(statistics, rows), head.softcap});
            });
  on.hooks().release(head.product.module);
  const Value log_sums = new_value(device, DType::fp32, count, 1);
  const Value entropy = new_value(device, DType::fp32, count, 1);
  const Value losses = new_value(device, DType::fp32, count, 1);
  on.run(LogSums{statistics, log_sums.tensor(), losses.tensor()});
  const double share = 1 / static_cast<double>(count);
  on.run(AddSum{losses.tensor(), share, input.loss});
  if (!on.records(x.needs_gradient() || head.is_trainable(on))) return {};
  return on.record({}, head.trained(on),
                   [&head, &factor, size, share, node = x.node,
                    saved = SavedRows{on.save(x), on.save(labels), on.save(log_sums),
                                      on.save(entropy)}](Tape& back, const Value&) mutable {
                     give_gradients(back, head, size, saved, factor * share, node);
                   });
}

}  // namespace dstune::nn
