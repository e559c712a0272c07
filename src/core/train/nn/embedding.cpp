#include "core/train/nn/embedding.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/train/nn/elementwise.hpp"

namespace dstune::nn {

Embedding::Embedding(const ModelNames& names, const std::string& name)
    : Embedding(names, names.module(name), names.tensor(name + ".weight")) {}

Embedding::Embedding(const ModelNames& names, std::size_t module, std::size_t weight)
    : module_(module),
      weight_(weight),
      rows_(names.shape(weight_).at(0)),
      size_(names.shape(weight_).at(1)) {}

Value Embedding::operator()(Tape& on, const Value& numbers) const {
  return run_module(on, module_, [&] { return look_up(on, numbers); });
}

Value Embedding::of_tokens(Tape& on, const Value& tokens, double factor) const {
  return run_module(on, module_, [&] {
    Value rows = look_up(on, tokens);
    if (factor != 1) rows = scale(on, rows, factor);
    const bool asks = on.context().inputs_need_gradients && !rows.needs_gradient();
    if (!on.records(asks)) return rows;
    // They are a leaf, which the node that would add up its gradient holds.
    return on.record(rows, [held = rows](Tape&, const Value&) {});
  });
}

Value Embedding::look_up(Tape& on, const Value& numbers) const {
  Value out = new_value(on.device(), on.context().dtype, numbers.numel(), size_);
  on.run(dstune::Embedding{.tokens = numbers.tensor(),
                           .table = as_matrix(on.hooks().parameter(weight_), rows_, size_),
                           .out = out.rows()});
  if (!on.records(on.hooks().is_trainable(weight_))) return out;
  return on.record(
      std::move(out), {weight_},
      [this, saved = on.save(numbers)](Tape& back, const Value& d) mutable {
        const Value kept = saved.take(back);
        Buffer whole = back.context().gradient(rows_ * size_);
        const Tensor table = whole.tensor(back.context().dtype);
        back.run(FillZero{table});
        back.run(EmbeddingBackward{
            .d_out = d.rows(), .tokens = kept.tensor(), .d_table = as_matrix(table, rows_, size_)});
        back.give(weight_, std::move(whole), Memory::own);
      });
}

Value tokens_of(Tensor tokens) {
  return {.storage = StoragePtr(new Storage(Buffer())),
          .matrix = as_matrix(tokens, 1, tokens.numel)};
}

Value positions(Tape& on, std::int64_t count, std::int64_t first) {
  const BatchContext& context = on.context();
  Value numbers = new_value(on.device(), DType::int64, 1, count);
  if (!context.is_packed) {
    on.run(
        FillPositions{.out = numbers.tensor(), .first = first, .period = context.sequence_length});
    return numbers;
  }
  for (const TokenSpan& sequence : context.sequences) {  // of the data, in PyTorch
    on.run(FillPositions{.out = numbers.tensor().slice(sequence.begin, sequence.length),
                         .first = first},
           0);
  }
  return numbers;
}

}  // namespace dstune::nn
