#include "core/train/nn/attention/eager_attention.hpp"

#include <limits>
#include <utility>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::nn {
namespace {

/// A new stack of the products op(a) op(b).
Value products(const Tape& on, const Value& a, Transpose transpose_a, const Value& b,
               Transpose transpose_b, int calls) {
  const std::int64_t rows = transpose_a == Transpose::yes ? a.matrix.cols : a.matrix.rows;
  const std::int64_t cols = transpose_b == Transpose::yes ? b.matrix.rows : b.matrix.cols;
  Value c = new_stack(on.device(), a.matrix.dtype, a.count, rows, cols);
  multiply_into(on, a, transpose_a, b, transpose_b, c, calls);
  return c;
}

}  // namespace

void multiply_into(const Tape& on, const Value& a, Transpose transpose_a, const Value& b,
                   Transpose transpose_b, const Value& c, int calls) {
  const auto step = [](const Value& stack) {
    return stack.step == 0 ? stack.matrix.rows * stack.matrix.cols : stack.step;
  };
  on.run(Gemm{.transpose_a = transpose_a,
              .transpose_b = transpose_b,
              .a = a.matrix,
              .b = b.matrix,
              .c = c.matrix,
              .batch = {.count = c.count, .a_step = step(a), .b_step = step(b), .c_step = step(c)}},
         calls);
}

Value multiply_stacks(Tape& on, const Value& a, const Value& b, Transpose transpose_b) {
  const bool records = on.records(a.needs_gradient() || b.needs_gradient());
  Saved saved_a = records && b.needs_gradient() ? on.save(a) : Saved();
  Saved saved_b = records && a.needs_gradient() ? on.save(b) : Saved();
  Value c = products(on, a, Transpose::no, b, transpose_b, kMatmulCalls);
  if (!records) return c;
  return on.record(
      std::move(c), [transpose_b, first = a.node, second = b.node, saved_a = std::move(saved_a),
                     saved_b = std::move(saved_b)](Tape& back, const Value& d) mutable {
        const Value kept_a = saved_a.take(back);
        const Value kept_b = saved_b.take(back);
        const bool was_transposed = transpose_b == Transpose::yes;
        if (kept_b) {
          back.give(first, products(back, d, Transpose::no, kept_b,
                                    was_transposed ? Transpose::no : Transpose::yes,
                                    kMatmulBackwardCalls));
        }
        if (kept_a) {
          back.give(second, was_transposed ? products(back, d, Transpose::yes, kept_a,
                                                      Transpose::no, kMatmulBackwardCalls)
                                           : products(back, kept_a, Transpose::yes, d,
                                                      Transpose::no, kMatmulBackwardCalls));
        }
      });
}

namespace {

/// A stack of heads as torch.matmul() makes it. All heads are copied, each as often as it serves
/// (repeat_kv); only the heads of a single sequence stay where they are, if each serves once.
Value stacked(const Tape& on, const AttentionShape& shape, const Value& rows, std::int64_t heads) {
  if (shape.batch == 1 && heads == shape.heads) {
    on.count_operators(kOperatorCalls<StackHeads>);  // views of what lies there
    Value lying = rows;
    if (rows.step != 0) return lying;
    lying.matrix.cols = shape.head_size;
    lying.count = heads;
    lying.step = shape.head_size;
    return lying;
  }
  Value stack = new_stack(on.device(), rows.matrix.dtype, shape.batch * shape.heads, shape.sequence,
                          shape.head_size);
  on.run(
      StackHeads{.shape = shape, .in = heads_of(rows, heads), .heads = heads, .out = stack.rows()});
  return stack;
}

/// The inverse of stacked(): rows (M, heads * head_size), each the sum over the heads that it
/// served.
Value spread(const Tape& on, const AttentionShape& shape, const Value& stack, std::int64_t heads) {
  Value rows = new_value(on.device(), stack.matrix.dtype, shape.rows(), heads * shape.head_size);
  on.run(SpreadHeads{
      .shape = shape, .in = stack.rows(), .out = {rows.matrix, shape.head_size}, .heads = heads});
  return rows;
}

}  // namespace

Value stack_heads(Tape& on, const AttentionShape& shape, const Value& rows, std::int64_t heads) {
  Value stack = stacked(on, shape, rows, heads);
  stack.node = Value::kNoNode;
  if (!on.records(rows.needs_gradient())) return stack;
  return on.record(std::move(stack), [shape, heads, node = rows.node](Tape& back, const Value& d) {
    back.give(node, spread(back, shape, d, heads));
  });
}

Value spread_heads(Tape& on, const AttentionShape& shape, const Value& stack) {
  Value rows = spread(on, shape, stack, shape.heads);
  if (!on.records(stack.needs_gradient())) return rows;
  return on.record(std::move(rows), [shape, node = stack.node](Tape& back, const Value& d) {
    back.give(node, stacked(back, shape, d, shape.heads));
  });
}

namespace {

/// torch.finfo(dtype).min
double lowest_of(DType dtype) {
  if (dtype == DType::fp16) return -65504;
  return dtype == DType::bf16 ? -3.38953139e38 : std::numeric_limits<float>::lowest();
}

// Writes the columns of padding into a mask without causal, which would not hide them.
void hide_padding(const Tape& on, const AttentionShape& shape, const Value& mask) {
  const DType dtype = mask.matrix.dtype;
  const std::int64_t s = shape.sequence;
  const Buffer buffer = make_buffer(on.device(), MemoryCategory::temporaries, s * s, dtype);
  const Tensor lowest = buffer.tensor(dtype);
  on.run(FillConstant{lowest, lowest_of(dtype)});
  const Tensor all = mask.tensor();
  for (const TokenSpan& padding : on.context().padding()) {
    const std::int64_t first = padding.begin / s * s * s + padding.begin % s;
    const Tensor columns = all.slice(first, all.numel - first);
    on.run(CopyRows{as_matrix(lowest.slice(0, s * padding.length), s, padding.length),
                    {columns.data, s, padding.length, dtype, s}},
           0);  // PyTorch's mask has it from the beginning
  }
}

/// True if some query does not see all keys, because of causal, a window, or padding.
bool hides_keys(const Tape& on, const AttentionShape& shape) {
  const bool has_window = shape.window > 0 && shape.window < shape.sequence;
  return shape.causal || has_window || on.context().is_padded();
}

/// The mask (batch, sequence, sequence): 0 where a query sees a key, else the lowest number of the
/// model's type. Causal hides padding from all tokens but padding, so that nothing more is hidden
/// then.
Value score_mask(const Tape& on, const AttentionShape& shape) {
  Value mask = new_value(on.device(), on.context().dtype, shape.rows(), shape.sequence);
  on.run(FillMask{shape, mask.tensor()});
  if (on.context().is_padded() && !shape.causal) hide_padding(on, shape, mask);
  return mask;
}

}  // namespace

Value add_mask(Tape& on, const AttentionShape& shape, const Value& scores, const Value& given) {
  const Value mask = given ? given : score_mask(on, shape);
  Value out = new_like(on.device(), scores);
  on.run(AddMask{shape, scores.tensor(), mask.tensor(), out.tensor()});
  if (!on.records(scores.needs_gradient())) return out;
  return on.record(std::move(out),
                   [node = scores.node](Tape& back, Value d) { back.give(node, std::move(d)); });
}

namespace {

// at::softmax() to fp32 reads fp16 as it is on CUDA, and other types from a copy (SoftMax.cpp).
Value probabilities(Tape& on, Value scores, SoftmaxType type) {
  const DType dtype = scores.matrix.dtype;
  const DType inner = type == SoftmaxType::fp32 ? DType::fp32 : dtype;
  if (dtype != DType::fp16) scores = cast(on, scores, inner);
  return cast(on, softmax(on, scores, inner), dtype);
}

Value visible_scores(Tape& on, const AttentionShape& shape, const Value& q, const Value& k,
                     const Value& mask) {
  Value scores = multiply_stacks(on, q, k, Transpose::yes);
  scores = scale(on, scores, shape.score_scale());
  if (shape.softcap > 0) scores = soft_cap(on, std::move(scores), shape.softcap);
  return hides_keys(on, shape) ? add_mask(on, shape, scores, mask) : scores;
}

}  // namespace

Value attention_mask(Tape& on, const AttentionShape& shape) {
  const bool has_mask = is_eager(on.context(), shape) && hides_keys(on, shape);
  return has_mask ? score_mask(on, shape) : Value();
}

// Heads that share keys are repeated at the start; the others are copied when they are multiplied.
Value attend_eagerly(Tape& on, SoftmaxType type, const AttentionShape& shape, const Value& q,
                     const Value& k, const Value& v, const Value& mask) {
  const bool repeats = shape.kv_heads != shape.heads;
  Value values = repeats ? stack_heads(on, shape, v, shape.kv_heads) : Value();
  Value probs;
  {
    const Value keys = stack_heads(on, shape, k, shape.kv_heads);
    const Value queries = stack_heads(on, shape, q, shape.heads);
    probs = probabilities(on, visible_scores(on, shape, queries, keys, mask), type);
  }
  probs = Dropout{.module = {}, .probability = shape.dropout}(on, std::move(probs), shape.seed);
  if (!repeats) values = stack_heads(on, shape, v, shape.kv_heads);
  return spread_heads(on, shape, multiply_stacks(on, probs, values, Transpose::no));
}

}  // namespace dstune::nn
