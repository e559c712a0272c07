#include "core/train/layers/losses/tiled_loss.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/layers/losses/labelled_rows.hpp"

namespace dstune::layers {

namespace {

// TRL's kernel keeps more of each row than the loss needs: what it logs.
constexpr std::int64_t kNumbersOfARow = 7;

struct Range {
  std::int64_t first;
  std::int64_t count;

  Tensor of(const Tensor& tensor) const { return tensor.slice(first, count); }
  /// Of rows of `cols` elements.
  Matrix of(const Tensor& tensor, std::int64_t cols) const {
    return as_matrix(tensor.slice(first * cols, count * cols), count, cols);
  }
};

/// The one of all tiles of `count` rows.
Buffer make_buffer_of(const Workspace& work, const LogitsTile& size, std::int64_t count) {
  return rows_of(work, std::min(count, size.rows), size.words, work.dtype);
}

/// f(rows, words, logits) for every tile of `size`, made in `buffer`.
template <class F>
void for_tiles(const Workspace& work, const LogitsTile& size, const Buffer& buffer,
               const Projection& head, const Tensor& rows, const Tensor& weight, F f) {
  const std::int64_t count = rows.numel / head.size;
  for (std::int64_t i = 0; i < count; i += size.rows) {
    const Range part{i, std::min(size.rows, count - i)};
    for (std::int64_t j = 0; j < head.vocab_size; j += size.words) {
      const Range words{j, std::min(size.words, head.vocab_size - j)};
      const Matrix logits{buffer.data(), part.count, words.count, work.dtype, size.words};
      work.device->run(Gemm{.transpose_b = Transpose::yes,
                            .a = part.of(rows, head.size),
                            .b = words.of(weight, head.size),
                            .c = logits});
      f(part, words, logits);
      work.device->tick();
    }
  }
}

Matrix columns(const Matrix& matrix, const Range& range) {
  auto* const data = static_cast<float*>(matrix.data) + range.first;
  return {data, matrix.rows, range.count, matrix.dtype, matrix.stride};
}

/// A sum in fp32 that ends in the model dtype.
struct Sum {
  Buffer fp32;

  Sum(Device& device, MemoryCategory category, std::int64_t numel)
      : fp32(make_buffer(device, category, numel, DType::fp32)) {
    device.run(FillZero{tensor()});
  }
  Tensor tensor() const { return fp32.tensor(DType::fp32); }
};

/// The sum itself where there is nothing to round.
Buffer rounded(const Workspace& work, Sum& sum, MemoryCategory category) {
  if (work.dtype == DType::fp32) return std::move(sum.fp32);
  Buffer result = make_buffer(*work.device, category, sum.tensor().numel, work.dtype);
  work.device->run(Cast{sum.tensor(), result.tensor(work.dtype)});
  return result;
}

}  // namespace

void TiledLoss::forward(const Workspace& work, ModuleHooks& hooks, const Projection& head, Buffer x,
                        Tensor tokens, Tensor loss) {
  Device& device = *work.device;
  const std::int64_t count = labelled_rows(work);
  rows_ = take_labelled_rows(work, x, head.size);
  labels_ = take_labels(work, tokens);
  const Buffer numbers = rows_of(work, count, kNumbersOfARow, DType::fp32);
  const Tensor of_numbers = numbers.tensor(DType::fp32);
  device.run(FillZero{of_numbers});
  device.run(FillConstant{of_numbers.slice(kLargest * count, count),
                          -std::numeric_limits<double>::infinity()});
  const Matrix statistics =
      as_matrix(of_numbers.slice(0, kRowStatistics * count), kRowStatistics, count);

  hooks.fetch(head.module);
  const Buffer tile = make_buffer_of(work, tile_, count);
  for_tiles(work, tile_, tile, head, rows_.tensor(work.dtype), hooks.parameter(head.weight),
            [&](const Range& rows, const Range& words, const Matrix& logits) {
              device.run(FoldLogits{logits, rows.of(labels_.tensor(DType::int64)), words.first,
                                    columns(statistics, rows), head.softcap});
            });
  hooks.release(head.module);
  log_sums_ = rows_of(work, count, 1, DType::fp32);
  entropy_ = rows_of(work, count, 1, DType::fp32);
  const Buffer losses = rows_of(work, count, 1, DType::fp32);
  const Tensor of_losses = losses.tensor(DType::fp32);
  device.run(LogSums{statistics, log_sums_.tensor(DType::fp32), of_losses});
  device.run(AddSum{of_losses, 1 / static_cast<double>(count), loss});
}

Buffer TiledLoss::backward(const Workspace& work, ModuleHooks& hooks, const Projection& head,
                           double factor, const WeightGradient& take_weight) {
  Device& device = *work.device;
  const Tensor x = rows_.tensor(work.dtype);
  const double row_factor = factor / static_cast<double>(labelled_rows(work));
  Buffer d_rows;
  Buffer d_weight;
  {
    Sum of_rows(device, MemoryCategory::activations, x.numel);
    std::optional<Sum> of_weight;
    if (hooks.is_trainable(head.weight)) {
      of_weight.emplace(device, MemoryCategory::gradients, head.vocab_size * head.size);
    }
    hooks.fetch(head.module);
    const Tensor weight = hooks.parameter(head.weight);
    const Buffer tile = make_buffer_of(work, tile_, labelled_rows(work));  // until both are rounded
    for_tiles(work, tile_, tile, head, x, weight,
              [&](const Range& rows, const Range& words, const Matrix& logits) {
                device.run(LogitsGradient{logits, rows.of(labels_.tensor(DType::int64)),
                                          words.first, rows.of(log_sums_.tensor(DType::fp32)),
                                          row_factor, head.softcap});
                device.run(Gemm{.a = logits,
                                .b = words.of(weight, head.size),
                                .beta = 1,
                                .c = rows.of(of_rows.tensor(), head.size)});
                if (!of_weight) return;
                device.run(Gemm{.transpose_a = Transpose::yes,
                                .a = logits,
                                .b = rows.of(x, head.size),
                                .beta = 1,
                                .c = words.of(of_weight->tensor(), head.size)});
              });
    hooks.release(head.module);
    d_rows = rounded(work, of_rows, MemoryCategory::activations);
    if (of_weight) d_weight = rounded(work, *of_weight, MemoryCategory::gradients);
  }
  for (Buffer* used : {&rows_, &labels_, &log_sums_, &entropy_}) used->reset();
  take_weight(std::move(d_weight));
  return spread_labelled_rows(work, d_rows, head.size);
}

}  // namespace dstune::layers
