#include "core/train/families/bert/bert_embeddings.hpp"

#include <string>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/fill.hpp"
#include "core/train/families/bert/bert_names.hpp"
#include "core/train/families/bert/bert_seeds.hpp"
#include "core/train/layers/tied_gradient.hpp"

namespace dstune::bert {

namespace {

using layers::EmbeddingTable;
using layers::Workspace;

std::string name_in(const ModelSpec& spec, std::string_view part) {
  return concat(names_of(kin_of(spec)).embeddings, part);
}

std::optional<EmbeddingTable> type_table(const ModelSpec& spec, const ModelNames& names) {
  const std::int64_t types = settings_of(spec).type_vocab_size;
  if (types == 0) return std::nullopt;
  return EmbeddingTable(names, name_in(spec, ".token_type_embeddings"), types, spec.hidden_size);
}

/// a + b, row by row; b is repeated.
Buffer added(const Workspace& work, Matrix a, Matrix b) {
  Buffer sum = work.activation(a.cols);
  work.device->run(AddBroadcast{.a = a, .b = b, .out = work.matrix(sum, a.cols)});
  return sum;
}

}  // namespace

Embeddings::Embeddings(const ModelSpec& spec, const ModelNames& names)
    : size_(spec.hidden_size),
      first_position_(first_position(spec)),
      per_token_(kin_of(spec) == Variant::roberta),
      words_(names, name_in(spec, ".word_embeddings"), spec.vocab_size, spec.hidden_size),
      types_(type_table(spec, names)),
      positions_(names, name_in(spec, ".position_embeddings"), spec.max_positions + first_position_,
                 spec.hidden_size),
      norm_(names, name_in(spec, ".LayerNorm"), spec.hidden_size, spec.layer_norm_epsilon),
      dropout_{.module = names.module(name_in(spec, ".dropout")),
               .probability = spec.embedding_dropout} {}

Matrix Embeddings::position_rows(const Workspace& work, const Buffer& rows) const {
  return as_matrix(rows.tensor(work.dtype), positions().numel, size_);
}

void Embeddings::make_numbers(const Workspace& work) {
  const auto numbers = [&](std::int64_t count) {
    return make_buffer(*work.device, MemoryCategory::activations, count, DType::int64);
  };
  position_numbers_ = numbers(per_token_ ? work.rows() : work.sequence_length);
  work.device->run(
      FillPositions{.out = positions(), .first = first_position_, .period = work.sequence_length});
  if (!types_) return;
  type_numbers_ = numbers(work.rows());
  work.device->run(FillZero{types()});
}

Buffer Embeddings::forward(const Workspace& work, ModuleHooks& hooks, Tensor tokens,
                           std::uint64_t seed) {
  tokens_ = tokens;
  make_numbers(work);
  // What is looked up are locals of the module's forward, which live until it returns.
  const Buffer words = words_.forward(work, hooks, tokens_);
  Buffer type_rows;
  Buffer partial;
  if (types_) {
    type_rows = types_->forward(work, hooks, types());
    partial = added(work, work.matrix(words, size_), work.matrix(type_rows, size_));
  }
  const Buffer rows = positions_.forward(work, hooks, positions());
  sum_ = added(work, work.matrix(partial ? partial : words, size_), position_rows(work, rows));
  partial.reset();
  Buffer normed = norm_.forward(work, hooks, sum_, stats_);
  return dropout_.forward(work, hooks, seed_at(seed, Chance::embedding), std::move(normed));
}

// Autograd never comes back to the inputs of the tables, which are numbers: nothing releases them.
void Embeddings::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out, Buffer of_head) {
  if (Buffer dropped = dropout_.backward(work, hooks, d_out)) d_out = std::move(dropped);
  Buffer d_sum = norm_.backward(work, hooks, d_out, sum_, stats_);
  for (Buffer* used : {&sum_, &stats_, &d_out}) used->reset();
  positions_backward(work, hooks, d_sum);
  if (types_) types_backward(work, hooks, d_sum);
  words_backward(work, hooks, std::move(d_sum), std::move(of_head));
}

void Embeddings::positions_backward(const Workspace& work, ModuleHooks& hooks,
                                    const Buffer& d_sum) {
  Buffer over_batch;  // else autograd hands the same tensor on
  if (positions().numel < work.rows()) {
    over_batch = make_buffer(*work.device, MemoryCategory::activations,
                             work.sequence_length * size_, work.dtype);
    work.device->run(
        AddBroadcastBackward{work.matrix(d_sum, size_), position_rows(work, over_batch)});
  }
  if (positions_.is_trainable) hooks.fetch(positions_.module);
  Buffer gradient = positions_.gradient(work, over_batch ? over_batch : d_sum, positions());
  over_batch.reset();
  position_numbers_.reset();
  hooks.gradient_ready(positions_.weight, std::move(gradient));
}

void Embeddings::types_backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_sum) {
  if (types_->is_trainable) hooks.fetch(types_->module);
  Buffer gradient = types_->gradient(work, d_sum, types());
  type_numbers_.reset();
  hooks.gradient_ready(types_->weight, std::move(gradient));
}

void Embeddings::words_backward(const Workspace& work, ModuleHooks& hooks, Buffer d_sum,
                                Buffer of_head) {
  if (words_.is_trainable) hooks.fetch(words_.module);
  Buffer gradient = words_.gradient(work, d_sum, tokens_);
  d_sum.reset();
  if (of_head) gradient = layers::sum_of_tied(work, std::move(of_head), std::move(gradient));
  hooks.gradient_ready(words_.weight, std::move(gradient));
}

}  // namespace dstune::bert
