#include <algorithm>
#include <utility>
#include <vector>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/losses.hpp"
#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/losses/causal_loss.hpp"
#include "core/train/nn/losses/cross_entropy.hpp"
#include "core/train/nn/losses/labelled_rows.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::nn {
namespace {

constexpr std::int64_t kChunk = 256;  // rows

// TRL indexes the rows with a mask, in which all of them count here: that copies x, and its
// gradient. In TRL the rows of a micro-batch of one sequence are a view until then;
// take_labelled_rows() has copied them already, which stands for this copy.
Value index_rows(Tape& on, const Value& x) {
  Value out = on.context().size > 1 ? copy(on, x.detached()) : x;
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [node = x.node](Tape& back, const Value& d) {
    back.give(node, copy(back, d.detached()));
  });
}

/// Rows [first, first + count) as a view. Its gradient is a tensor of all rows.
Value slice_rows(Tape& on, const Value& x, std::int64_t first, std::int64_t count) {
  const std::int64_t cols = x.matrix.cols;
  Value view = x;
  view.matrix = as_matrix(x.tensor().slice(first * cols, count * cols), count, cols);
  if (!on.records(x.needs_gradient())) return view;
  return on.record(
      std::move(view), [first, rows = x.matrix.rows, node = x.node](Tape& back, const Value& d) {
        Value whole = new_value(back.device(), d.matrix.dtype, rows, d.matrix.cols);
        back.run(FillZero{whole.tensor()});
        back.run(Copy{d.tensor(), whole.tensor().slice(first * d.matrix.cols, d.numel())});
        back.give(node, std::move(whole));
        back.device().tick();
      });
}

/// Some of the labelled rows.
struct Chunk {
  const LmHead* head;
  const double* factor;
  Value x;
  Value labels;
  double share;  ///< the chunk's part of the mean
};

enum class Run { first, again };

/// h @ w.t(), with hooks for the weight alone: forward releases the weight at once, and a chunk
/// that runs again holds it until its backward is over.
Value multiply(Tape& on, const Chunk& chunk, Run run) {
  const LmHead& head = *chunk.head;
  const bool trains = head.is_trainable(on);
  on.hooks().fetch(head.product.module);
  const bool records = on.records(chunk.x.needs_gradient() || trains);
  Saved saved = records && trains ? on.save(chunk.x) : Saved();
  Value logits =
      new_value(on.device(), chunk.x.matrix.dtype, chunk.x.matrix.rows, head.vocab_size());
  on.run(Gemm{.transpose_b = Transpose::yes,
              .a = chunk.x.matrix,
              .b = head.matrix(on.hooks().parameter(head.product.weight)),
              .c = logits.matrix});
  if (run == Run::first) on.hooks().release(head.product.module);
  if (!records) return logits;
  return on.record(
      std::move(logits), head.trained(on),
      [&head, node = chunk.x.node, saved = std::move(saved)](Tape& back, const Value& d) mutable {
        const std::size_t weight = head.product.weight;
        if (node != Value::kNoNode) {
          Value d_x = new_value(back.device(), d.matrix.dtype, d.matrix.rows, head.size());
          back.run(Gemm{
              .a = d.matrix, .b = head.matrix(back.hooks().parameter(weight)), .c = d_x.matrix});
          back.give(node, std::move(d_x));
        }
        if (const Value x = saved.take(back)) {
          Buffer d_weight = back.context().gradient(head.size() * head.vocab_size());
          back.run(Gemm{.transpose_a = Transpose::yes,
                        .a = d.matrix,
                        .b = x.matrix,
                        .c = head.matrix(d_weight.tensor(d.matrix.dtype))});
          back.give(weight, std::move(d_weight), Memory::view);
        }
        back.hooks().release(head.product.module);
      });
}

void log_guesses(const Tape& on, const Value& logits) {
  const Value guesses = new_value(on.device(), DType::int64, logits.matrix.rows, 1);
  on.run(Argmax{logits.matrix, guesses.tensor()});
}

// No gradient comes back through the metrics. But the mask that the entropies are multiplied with
// is the last value that the chunk saves, and so all of this runs again, too.
void log_entropy(Tape& on, const Value& log_probs) {
  const Value probs = new_like(on.device(), log_probs);
  const Value terms = new_like(on.device(), log_probs);
  const Value entropies = new_value(on.device(), DType::fp32, log_probs.matrix.rows, 1);
  on.run(Entropy{log_probs.matrix, probs.matrix, terms.matrix, entropies.tensor()});
  if (!on.records(log_probs.needs_gradient())) return;
  on.record({}, [mask = on.save({})](Tape&, const Value&) {});
}

/// TRL's _chunk().
Value loss_of(Tape& on, const Chunk& chunk, Tensor loss, Run run) {
  Value logits = cast(on, multiply(on, chunk, run), DType::fp32);
  if (chunk.head->softcap > 0) logits = soft_cap(on, std::move(logits), chunk.head->softcap);
  const Value log_probs = log_softmax(on, logits);
  Value result = nll_loss(on, log_probs, chunk.labels, *chunk.factor, loss, chunk.share);
  log_guesses(on, logits);
  log_entropy(on, log_probs);
  return result;
}

}  // namespace

Value chunked_loss(Tape& on, const LmHead& head, const Value& x, const StepInput& input,
                   const double& factor) {
  const Value rows = index_rows(on, take_labelled_rows(on, x));
  const Value labels = take_labels(on, input.tokens);
  std::vector<Value> losses;
  for (std::int64_t first = 0; first < labels.numel(); first += kChunk) {
    const std::int64_t count = std::min(kChunk, labels.numel() - first);
    const Chunk chunk{.head = &head,
                      .factor = &factor,
                      .x = slice_rows(on, rows, first, count),
                      .labels = slice_rows(on, labels, first, count),
                      .share = static_cast<double>(count) / static_cast<double>(labels.numel())};
    const boost::intrusive_ptr<CheckpointFrame> frame(
        new CheckpointFrame([chunk](Tape& again) { loss_of(again, chunk, {}, Run::again); }));
    losses.push_back(on.within(*frame, [&] { return loss_of(on, chunk, input.loss, Run::first); }));
    on.device().tick();
  }
  return sum_of_losses(on, losses);
}

}  // namespace dstune::nn
