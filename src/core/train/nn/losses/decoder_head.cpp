#include "core/train/nn/losses/decoder_head.hpp"

#include <stdexcept>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/nn/losses/cross_entropy.hpp"

namespace dstune::nn {
namespace {

std::variant<LmHead, Linear> head_of(const ModelSpec& spec, const ModelNames& names,
                                     std::optional<std::size_t> tied_weight, double softcap) {
  if (spec.task == Task::sequence_classification) return Linear(names, "score");
  return LmHead(names, "lm_head", tied_weight, softcap);
}

/// The last row of each sequence.
Value last_rows(Tape& on, const Value& x) {
  const std::int64_t sequence = on.context().sequence_length;
  const auto last = [sequence](const Value& all) {
    const std::int64_t cols = all.matrix.cols;
    const std::int64_t skipped = (sequence - 1) * cols;
    const Tensor from = all.tensor().slice(skipped, all.numel() - skipped);
    return Matrix{from.data, all.matrix.rows / sequence, cols, from.dtype, sequence * cols};
  };
  Value out = new_value(on.device(), x.matrix.dtype, x.matrix.rows / sequence, x.matrix.cols);
  on.run(CopyRows{last(x), out.matrix});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out),
                   [last, rows = x.matrix.rows, node = x.node](Tape& back, const Value& d) {
                     Value d_x = new_value(back.device(), d.matrix.dtype, rows, d.matrix.cols);
                     back.run(FillZero{d_x.tensor()});
                     back.run(CopyRows{d.matrix, last(d_x)});
                     back.give(node, std::move(d_x));
                   });
}

// The logits of all tokens are a local of the model's forward, which ends with the loss.
Value sequence_loss(Tape& on, const Linear& score, const Value& x, const StepInput& input,
                    const double& factor) {
  constexpr std::uint64_t kLabels = 0;
  const Value logits = score(on, x);
  const Value pooled = last_rows(on, logits);
  const Value labels = new_value(on.device(), DType::int64, pooled.matrix.rows, 1);
  on.run(FillTokens{
      .out = labels.tensor(), .vocab = logits.matrix.cols, .seed = input.seed_at(kLabels)});
  return cross_entropy(on, pooled, labels, factor, input.loss);
}

}  // namespace

DecoderHead::DecoderHead(const ModelSpec& spec, const ModelNames& names,
                         std::optional<std::size_t> tied_weight, double softcap)
    : head_(head_of(spec, names, tied_weight, softcap)) {}

DecoderHead::DecoderHead(const ModelNames& names, const std::string& name)
    : head_(LmHead(names, name, std::nullopt)) {}

Value DecoderHead::operator()(Tape& on, const Value& x, const StepInput& input,
                              const double& factor) {
  if (const auto* lm_head = std::get_if<LmHead>(&head_)) {
    return causal_loss(on, *lm_head, x, input, factor);
  }
  return sequence_loss(on, std::get<Linear>(head_), x, input, factor);
}

Value DecoderHead::causal_loss(Tape& on, const LmHead& head, const Value& x, const StepInput& input,
                               const double& factor) {
  const LossSettings& settings = on.context().loss;
  switch (settings.kind) {
    case LossKind::plain:
      return plain_loss(on, head, x, input, factor, settings.keep_logits ? &held_logits_ : nullptr);
    case LossKind::chunked:
      return chunked_loss(on, head, x, input, factor);
    case LossKind::tiled:
      return tiled_loss(on, head, x, input, factor);
    case LossKind::fused:
      return fused_loss(on, head, x, input, factor);
  }
  throw std::invalid_argument("no such loss");
}

}  // namespace dstune::nn
