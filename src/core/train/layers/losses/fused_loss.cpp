#include "core/train/layers/losses/fused_loss.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/layers/losses/labelled_rows.hpp"

namespace dstune::layers {

namespace {

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::int64_t FusedLoss::chunk_rows(std::int64_t rows, std::int64_t size, std::int64_t vocab_size) {
  const auto part = static_cast<std::uint64_t>(quotient_up(rows, quotient_up(vocab_size, size)));
  return std::min(static_cast<std::int64_t>(std::bit_ceil(part)), rows);
}

void FusedLoss::forward(const Workspace& work, ModuleHooks& hooks, const Projection& head, Buffer x,
                        Tensor tokens, Tensor loss) {
  Device& device = *work.device;
  const std::int64_t rows = work.rows();
  const Buffer labels = next_tokens(work, tokens);
  d_input_ = work.activation(head.size);
  if (hooks.is_trainable(head.weight)) d_weight_ = work.gradient(head.vocab_size * head.size);
  const Buffer losses = rows_of(work, rows, 1, DType::fp32);
  const Tensor of_losses = losses.tensor(DType::fp32);
  device.run(FillZero{d_input_.tensor(work.dtype)});
  if (d_weight_) device.run(FillZero{d_weight_.tensor(work.dtype)});
  device.run(FillZero{of_losses});

  hooks.fetch(head.module);
  const Matrix weight = head.matrix(hooks.parameter(head.weight));
  const std::int64_t chunk = chunk_rows(rows, head.size, head.vocab_size);
  const Buffer buffer = rows_of(work, chunk, head.vocab_size, work.dtype);
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t count = std::min(chunk, rows - first);
    const auto part = [&](const Buffer& all) {
      const Tensor tensor = all.tensor(work.dtype).slice(first * head.size, count * head.size);
      return as_matrix(tensor, count, head.size);
    };
    const Matrix logits{buffer.data(), count, head.vocab_size, work.dtype, head.vocab_size};
    device.run(Gemm{.transpose_b = Transpose::yes, .a = part(x), .b = weight, .c = logits});
    device.run(CrossEntropy{logits, labels.tensor(DType::int64).slice(first, count),
                            of_losses.slice(first, count), head.softcap});
    device.run(Gemm{.a = logits, .b = weight, .c = part(d_input_)});
    if (d_weight_) add_weight_gradient(work, head, logits, part(x));
    device.tick();
  }
  hooks.release(head.module);
  device.run(AddSum{of_losses, 1 / static_cast<double>(labelled_rows(work)), loss});
}

// 16-bit products are added on the way out, fp32 ones by a pass of their own.
void FusedLoss::add_weight_gradient(const Workspace& work, const Projection& head,
                                    const Matrix& d_logits, const Matrix& x) const {
  const Tensor sum = d_weight_.tensor(work.dtype);
  Gemm product{
      .transpose_a = Transpose::yes, .a = d_logits, .b = x, .beta = 1, .c = head.matrix(sum)};
  if (work.dtype != DType::fp32) return work.device->run(product);
  const Buffer part = work.gradient(sum.numel);
  product.beta = 0;
  product.c = head.matrix(part.tensor(work.dtype));
  work.device->run(product);
  work.device->run(Add{sum, part.tensor(work.dtype)});
}

Buffer FusedLoss::backward(const Workspace& work, ModuleHooks& /*hooks*/,
                           const Projection& /*head*/, double factor,
                           const WeightGradient& take_weight) {
  const double row_factor = factor / static_cast<double>(labelled_rows(work));
  work.device->run(Scale{d_input_.tensor(work.dtype), row_factor});
  if (d_weight_) work.device->run(Scale{d_weight_.tensor(work.dtype), row_factor});
  take_weight(std::move(d_weight_));
  return std::move(d_input_);
}

}  // namespace dstune::layers
