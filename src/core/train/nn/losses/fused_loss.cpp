#include <algorithm>
#include <bit>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/nn/losses/causal_loss.hpp"
#include "core/train/nn/losses/labelled_rows.hpp"

namespace dstune::nn {
namespace {

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Adds a product to the weight's gradient: 16-bit products are added in their epilogue, fp32 ones
/// by a pass of their own.
void add_product(const Tape& on, const LmHead& head, const Matrix& d_logits, const Matrix& x,
                 const Tensor& sum) {
  Gemm product{
      .transpose_a = Transpose::yes, .a = d_logits, .b = x, .beta = 1, .c = head.matrix(sum)};
  if (sum.dtype != DType::fp32) return on.run(product);
  const Buffer part = on.context().gradient(sum.numel);
  product.beta = 0;
  product.c = head.matrix(part.tensor(sum.dtype));
  on.run(product);
  on.run(Add{sum, part.tensor(sum.dtype)});
}

/// The gradients of the sum of all tokens' losses.
struct Gradients {
  Value by_x;
  Buffer by_weight;  ///< empty if the weight is frozen
};

/// Adds up both gradients, which are zero before, and writes the losses of the tokens.
void add_up(const Tape& on, const LmHead& head, const Value& x, const Value& labels,
            const Gradients& gradients, const Tensor& losses) {
  const DType dtype = x.matrix.dtype;
  const std::int64_t rows = x.matrix.rows;
  const Matrix weight = head.matrix(on.hooks().parameter(head.product.weight));
  const std::int64_t chunk = fused_chunk_rows(rows, head.size(), head.vocab_size());
  const Value buffer = new_value(on.device(), dtype, chunk, head.vocab_size());
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t count = std::min(chunk, rows - first);
    const auto part = [&](const Value& all) {
      return as_matrix(all.tensor().slice(first * head.size(), count * head.size()), count,
                       head.size());
    };
    Matrix logits = buffer.matrix;
    logits.rows = count;
    on.run(Gemm{.transpose_b = Transpose::yes, .a = part(x), .b = weight, .c = logits});
    on.run(CrossEntropy{logits, labels.tensor().slice(first, count), losses.slice(first, count),
                        head.softcap});
    on.run(Gemm{.a = logits, .b = weight, .c = part(gradients.by_x)});
    if (gradients.by_weight) {
      add_product(on, head, logits, part(x), gradients.by_weight.tensor(dtype));
    }
    on.device().tick();
  }
}

}  // namespace

std::int64_t fused_chunk_rows(std::int64_t rows, std::int64_t size, std::int64_t vocab_size) {
  const auto part = static_cast<std::uint64_t>(quotient_up(rows, quotient_up(vocab_size, size)));
  return std::min(static_cast<std::int64_t>(std::bit_ceil(part)), rows);
}

Value fused_loss(Tape& on, const LmHead& head, const Value& x, const StepInput& input,
                 const double& factor) {
  const Value labels = next_tokens(on, input.tokens);
  Gradients gradients{new_like(on.device(), x), {}};
  const Tensor d_x = gradients.by_x.tensor();
  if (head.is_trainable(on)) {
    gradients.by_weight = on.context().gradient(head.vocab_size() * head.size());
  }
  const Value losses = new_value(on.device(), DType::fp32, x.matrix.rows, 1);
  on.run(FillZero{d_x});
  if (gradients.by_weight) on.run(FillZero{gradients.by_weight.tensor(d_x.dtype)});
  on.run(FillZero{losses.tensor()});

  on.hooks().fetch(head.product.module);
  add_up(on, head, x, labels, gradients, losses.tensor());
  on.hooks().release(head.product.module);
  const auto count = static_cast<double>(labelled_rows(on.context()));
  on.run(AddSum{losses.tensor(), 1 / count, input.loss});
  if (!on.records(x.needs_gradient() || gradients.by_weight)) return {};
  return on.record({}, head.trained(on),
                   [&factor, count, node = x.node, weight = head.product.weight,
                    gradients = std::move(gradients)](Tape& back, const Value&) mutable {
                     const Tensor d = gradients.by_x.tensor();
                     back.run(Scale{d, factor / count});
                     back.give(node, std::move(gradients.by_x));
                     if (!gradients.by_weight) return;
                     back.run(Scale{gradients.by_weight.tensor(d.dtype), factor / count});
                     back.give(weight, std::move(gradients.by_weight), Memory::own);
                   });
}

}  // namespace dstune::nn
