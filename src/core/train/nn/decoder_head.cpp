#include "core/train/nn/decoder_head.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/nn/cross_entropy.hpp"

namespace dstune::nn {
namespace {

layers::Head language_head(const ModelNames& names, const std::string& name,
                           std::optional<std::size_t> tied_weight, double softcap) {
  const std::size_t weight = tied_weight ? *tied_weight : names.tensor(name + ".weight");
  return {.module = names.module(name),
          .weight = weight,
          .size = names.shape(weight).at(1),
          .vocab_size = names.shape(weight).at(0),
          .is_tied = tied_weight.has_value(),
          .softcap = softcap};
}

std::variant<layers::Head, Linear> head_of(const ModelSpec& spec, const ModelNames& names,
                                           std::optional<std::size_t> tied_weight, double softcap) {
  if (spec.task == Task::sequence_classification) return Linear(names, "score");
  return language_head(names, "lm_head", tied_weight, softcap);
}

/// The last row of each sequence.
Value last_rows(Tape& on, const Value& x) {
  const std::int64_t sequence = on.work().sequence_length;
  const auto last = [sequence](const Value& all) {
    const std::int64_t cols = all.matrix.cols;
    const std::int64_t skipped = (sequence - 1) * cols;
    const Tensor from = all.tensor().slice(skipped, all.numel() - skipped);
    return Matrix{from.data, all.matrix.rows / sequence, cols, from.dtype, sequence * cols};
  };
  Value out = new_value(on.device(), x.matrix.dtype, x.matrix.rows / sequence, x.matrix.cols);
  on.device().run(CopyRows{last(x), out.matrix});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out),
                   [last, rows = x.matrix.rows, node = x.node](Tape& back, const Value& d) {
                     Value d_x = new_value(back.device(), d.matrix.dtype, rows, d.matrix.cols);
                     back.device().run(FillZero{d_x.tensor()});
                     back.device().run(CopyRows{d.matrix, last(d_x)});
                     back.give(node, std::move(d_x));
                   });
}

// The logits of all tokens are a local of the model's forward, which ends with the loss.
Value sequence_loss(Tape& on, const Linear& score, Value x, const StepInput& input,
                    const double& factor) {
  constexpr std::uint64_t kLabels = 0;
  const Value logits = score(on, std::move(x));
  const Value pooled = last_rows(on, logits);
  const Value labels = new_value(on.device(), DType::int64, pooled.matrix.rows, 1);
  on.device().run(FillTokens{
      .out = labels.tensor(), .vocab = logits.matrix.cols, .seed = input.seed_at(kLabels)});
  return cross_entropy(on, pooled, labels, factor, input.loss);
}

}  // namespace

DecoderHead::DecoderHead(const ModelSpec& spec, const ModelNames& names,
                         std::optional<std::size_t> tied_weight, double softcap)
    : tied_weight_(tied_weight), head_(head_of(spec, names, tied_weight, softcap)) {}

DecoderHead::DecoderHead(const ModelNames& names, const std::string& name)
    : head_(language_head(names, name, std::nullopt, 0)) {}

Value DecoderHead::operator()(Tape& on, Value x, const StepInput& input, const double& factor) {
  if (auto* language = std::get_if<layers::Head>(&head_)) {
    return language_loss(on, *language, x, input, factor);
  }
  return sequence_loss(on, std::get<Linear>(head_), std::move(x), input, factor);
}

// One node for head and loss, whose kinds are functions of their own in their libraries.
Value DecoderHead::language_loss(Tape& on, layers::Head& head, const Value& x,
                                 const StepInput& input, const double& factor) const {
  const std::size_t node = x.node;
  const std::int64_t rows = x.matrix.rows;
  const std::int64_t cols = x.matrix.cols;
  head.forward(on.work(), on.hooks(), std::move(x.storage->buffer), input.tokens, input.loss);
  NodeParameters trained;
  if (tied_weight_ && on.hooks().is_trainable(*tied_weight_)) trained.add(*tied_weight_);
  return on.record(
      {}, trained,
      [&head, &factor, tied = tied_weight_, node, rows, cols](Tape& back, const Value&) {
        Buffer d_tied;
        Buffer d_x = head.backward(back.work(), back.hooks(), factor, d_tied);
        back.give(node, value_of(std::move(d_x), back.work().dtype, rows, cols));
        if (d_tied) {
          back.give(*tied, std::move(d_tied),
                    layers::weight_gradient_is_view(back.work()) ? Memory::view : Memory::own);
        }
      });
}

}  // namespace dstune::nn
