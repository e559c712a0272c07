#include "core/train/families/deberta/deberta_embeddings.hpp"

#include <string>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/scale.hpp"
#include "core/train/families/bert/bert_seeds.hpp"
#include "core/train/families/deberta/deberta_names.hpp"
#include "core/train/layers/tied_gradient.hpp"

namespace dstune::deberta {

namespace {

using layers::EmbeddingTable;
using layers::Workspace;

std::string name_in(const char* part) { return concat(kEmbeddings, part); }

std::optional<EmbeddingTable> table_if(bool has_it, const ModelNames& names, const char* part,
                                       std::int64_t rows, std::int64_t columns) {
  if (!has_it) return std::nullopt;
  return EmbeddingTable(names, name_in(part), rows, columns);
}

std::optional<layers::Linear> projection_of(const ModelSpec& spec, const DebertaSettings& settings,
                                            const ModelNames& names) {
  if (settings.embedding_size == spec.hidden_size) return std::nullopt;
  return layers::Linear(names, name_in(".embed_proj"), settings.embedding_size, spec.hidden_size,
                        layers::WeightOrder::out_in, false);
}

/// a + b, row by row; b is repeated.
Buffer added(const Workspace& work, Matrix a, Matrix b) {
  Buffer sum = work.activation(a.cols);
  work.device->run(AddBroadcast{.a = a, .b = b, .out = work.matrix(sum, a.cols)});
  return sum;
}

/// As the product with a mask of ones.
Buffer masked(const Workspace& work, const Buffer& in, std::int64_t columns) {
  Buffer out = work.activation(columns);
  work.device->run(ScaleTo{in.tensor(work.dtype), 1, out.tensor(work.dtype)});
  return out;
}

}  // namespace

DebertaEmbeddings::DebertaEmbeddings(const ModelSpec& spec, const DebertaSettings& settings,
                                     const ModelNames& names)
    : size_(spec.hidden_size),
      embedding_size_(settings.embedding_size),
      words_(names, name_in(".word_embeddings"), spec.vocab_size, embedding_size_),
      positions_(table_if(settings.position_biased_input, names, ".position_embeddings",
                          spec.max_positions, embedding_size_)),
      types_(table_if(settings.common.type_vocab_size > 0, names, ".token_type_embeddings",
                      settings.common.type_vocab_size, embedding_size_)),
      projection_(projection_of(spec, settings, names)),
      norm_(names, name_in(".LayerNorm"), spec.hidden_size, spec.layer_norm_epsilon),
      dropout_{.module = names.module(name_in(".dropout")), .probability = spec.embedding_dropout} {
}

void DebertaEmbeddings::make_numbers(const Workspace& work) {
  const auto numbers = [&](std::int64_t count) {
    return make_buffer(*work.device, MemoryCategory::activations, count, DType::int64);
  };
  if (positions_) {
    position_numbers_ = numbers(work.sequence_length);
    work.device->run(FillPositions{.out = positions()});
  }
  if (!types_) return;
  type_numbers_ = numbers(work.rows());
  work.device->run(FillZero{types()});
}

// What is looked up are locals of the module's forward in PyTorch; where there are no positions, so
// many zeros.
Buffer DebertaEmbeddings::sum_of_tables(const Workspace& work, ModuleHooks& hooks) {
  const std::int64_t e = embedding_size_;
  Buffer sum = words_.forward(work, hooks, tokens_);
  if (positions_) {
    const Buffer rows = positions_->forward(work, hooks, positions());
    sum = added(work, work.matrix(sum, e),
                as_matrix(rows.tensor(work.dtype), work.sequence_length, e));
  } else {
    const Buffer zeros = work.activation(e);
    work.device->run(FillZero{zeros.tensor(work.dtype)});
  }
  if (!types_) return sum;
  const Buffer rows = types_->forward(work, hooks, types());
  return added(work, work.matrix(sum, e), work.matrix(rows, e));
}

Buffer DebertaEmbeddings::forward(const Workspace& work, ModuleHooks& hooks, Tensor tokens,
                                  std::uint64_t seed) {
  tokens_ = tokens;
  make_numbers(work);
  sum_ = sum_of_tables(work, hooks);
  if (projection_) {
    embedded_ = std::move(sum_);
    sum_ = projection_->forward(work, hooks, embedded_);
  }
  Buffer normed = norm_.forward(work, hooks, sum_, stats_);
  mask_ = work.activation(1);
  work.device->run(FillConstant{mask_.tensor(work.dtype), 1});
  normed = masked(work, normed, size_);
  return dropout_.forward(work, hooks, bert::seed_at(seed, bert::Chance::embedding),
                          std::move(normed));
}

// Autograd never comes back to the inputs of the tables, which are numbers: nothing releases them.
void DebertaEmbeddings::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out,
                                 Buffer of_head) {
  if (Buffer dropped = dropout_.backward(work, hooks, d_out)) d_out = std::move(dropped);
  d_out = masked(work, d_out, size_);
  mask_.reset();
  Buffer d_sum = norm_.backward(work, hooks, d_out, sum_, stats_);
  for (Buffer* used : {&sum_, &stats_, &d_out}) used->reset();
  if (projection_) {
    d_sum = projection_->backward(work, hooks, d_sum, embedded_);
    embedded_.reset();
  }
  if (types_) {
    if (types_->is_trainable) hooks.fetch(types_->module);
    Buffer gradient = types_->gradient(work, d_sum, types());
    type_numbers_.reset();
    hooks.gradient_ready(types_->weight, std::move(gradient));
  }
  if (positions_) positions_backward(work, hooks, d_sum);
  if (words_.is_trainable) hooks.fetch(words_.module);
  Buffer gradient = words_.gradient(work, d_sum, tokens_);
  d_sum.reset();
  if (of_head) gradient = layers::sum_of_tied(work, std::move(of_head), std::move(gradient));
  hooks.gradient_ready(words_.weight, std::move(gradient));
}

void DebertaEmbeddings::positions_backward(const Workspace& work, ModuleHooks& hooks,
                                           const Buffer& d_sum) {
  const std::int64_t e = embedding_size_;
  Buffer over_batch;  // else autograd hands the same tensor on
  if (work.micro_batch > 1) {
    over_batch = make_buffer(*work.device, MemoryCategory::activations, work.sequence_length * e,
                             work.dtype);
    work.device->run(AddBroadcastBackward{
        work.matrix(d_sum, e), as_matrix(over_batch.tensor(work.dtype), work.sequence_length, e)});
  }
  if (positions_->is_trainable) hooks.fetch(positions_->module);
  Buffer gradient = positions_->gradient(work, over_batch ? over_batch : d_sum, positions());
  over_batch.reset();
  position_numbers_.reset();
  hooks.gradient_ready(positions_->weight, std::move(gradient));
}

}  // namespace dstune::deberta
