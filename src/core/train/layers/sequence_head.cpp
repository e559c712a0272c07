#include "core/train/layers/sequence_head.hpp"

#include <utility>

#include "core/device/operations/fill.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/rows.hpp"

namespace dstune::layers {

namespace {

/// Of the last tokens alone.
Workspace last_tokens_of(Workspace work) {
  work.sequence_length = 1;
  return work;
}

/// Of `rows`, made for all tokens, those of last tokens.
Matrix last_rows(const Workspace& work, const Buffer& rows, std::int64_t cols) {
  const Tensor all = rows.tensor(work.dtype);
  const std::int64_t skipped = (work.sequence_length - 1) * cols;
  return {all.slice(skipped, all.numel - skipped).data, work.micro_batch, cols, work.dtype,
          work.sequence_length * cols};
}

Buffer draw_labels(const Workspace& work, std::int64_t classes, std::uint64_t seed) {
  constexpr std::uint64_t kPlace = 0;
  Buffer labels =
      make_buffer(*work.device, MemoryCategory::activations, work.micro_batch, DType::int64);
  work.device->run(FillTokens{
      .out = labels.tensor(DType::int64), .vocab = classes, .seed = seed_of(seed, kPlace)});
  return labels;
}

}  // namespace

// The logits of all tokens are a local of the model's forward, which ends with the loss.
void SequenceHead::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, std::uint64_t seed,
                           Tensor loss) {
  input = std::move(x);
  const Buffer logits = score.forward(work, hooks, input);
  const Workspace last = last_tokens_of(work);
  Buffer pooled = last.activation(score.out);
  work.device->run(CopyRows{last_rows(work, logits, score.out), last.matrix(pooled, score.out)});
  label_loss.forward(last, std::move(pooled), draw_labels(work, score.out, seed), loss);
}

Buffer SequenceHead::backward(const Workspace& work, ModuleHooks& hooks, double factor) {
  const Workspace last = last_tokens_of(work);
  Buffer d_pooled = label_loss.backward(last, factor);
  const Buffer d_logits = work.activation(score.out);
  work.device->run(FillZero{d_logits.tensor(work.dtype)});
  work.device->run(
      CopyRows{last.matrix(d_pooled, score.out), last_rows(work, d_logits, score.out)});
  d_pooled.reset();
  Buffer d_x = score.backward(work, hooks, d_logits, input);
  input.reset();
  return d_x;
}

}  // namespace dstune::layers
