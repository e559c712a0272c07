#include "core/train/families/bert/bert_classifier.hpp"

#include <string>
#include <utility>

#include "core/device/operations/copy.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/fill.hpp"
#include "core/train/families/bert/bert_seeds.hpp"

namespace dstune::bert {

namespace {

using layers::Workspace;

MicroBatch first_tokens_of(MicroBatch batch) {
  batch.sequence_length = 1;
  return batch;
}

std::optional<std::size_t> module_if(const ModelNames& names, std::string_view name) {
  return name.empty() ? std::nullopt : std::optional(names.module(name));
}

layers::DropoutLayer dropout(const ModelNames& names, std::string_view name, double probability) {
  return {.module = names.module(name), .probability = probability};
}

layers::Workspace with_dtype(layers::Workspace work, DType dtype) {
  work.dtype = dtype;
  return work;
}

ClassifierTraits traits_of(const ModelSpec& spec) {
  return {.activation = kin_of(spec) == Variant::distilbert ? "relu" : "tanh",
          .num_labels = settings_of(spec).num_labels,
          .input_dropout = spec.classifier_dropout};
}

/// 0, 1, ... for every sequence.
Buffer sequences(const Workspace& work) {
  Buffer numbers =
      make_buffer(*work.device, MemoryCategory::temporaries, work.micro_batch, DType::int64);
  work.device->run(FillPositions{numbers.tensor(DType::int64)});
  return numbers;
}

/// Of (M, h) the rows of first tokens, one per sequence.
Matrix rows_of_first(const Workspace& work, const Buffer& rows, std::int64_t size) {
  Matrix first = work.matrix(rows, size);
  first.rows = work.micro_batch;
  first.stride *= work.sequence_length;
  return first;
}

}  // namespace

Classifier::Classifier(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch,
                       Device& device)
    : Classifier(spec, names, batch, device, names_of(kin_of(spec)).classifier, traits_of(spec)) {}

Classifier::Classifier(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch,
                       Device& device, const ClassifierNames& called,
                       const ClassifierTraits& traits)
    : size_(spec.hidden_size),
      first_(first_tokens_of(batch), device),
      scopes_(names, "", called.scopes),
      dense_(names, std::string(called.dense), spec.hidden_size, spec.hidden_size,
             layers::WeightOrder::out_in),
      activation_(module_if(names, called.activation), traits.activation, spec.hidden_size),
      dropout_(dropout(names, called.dropout, spec.classifier_dropout)),
      out_(names, std::string(called.out), spec.hidden_size, traits.num_labels,
           layers::WeightOrder::out_in),
      of_loss_(with_dtype(first_, traits.loss_in_fp32 ? DType::fp32 : first_.dtype)),
      loss_{.classes = traits.num_labels} {
  dense_.takes_matrix = true;
  out_.takes_matrix = true;
  if (called.input_dropout.empty()) return;
  input_dropout_ = dropout(names, called.input_dropout, traits.input_dropout);
}

Buffer Classifier::first_rows(const Workspace& work) const {
  const Buffer numbers = sequences(work);
  Buffer rows = first_.activation(size_);
  work.device->run(Embedding{.tokens = numbers.tensor(DType::int64),
                             .table = rows_of_first(work, states_, size_),
                             .out = first_.matrix(rows, size_)});
  return rows;
}

Buffer Classifier::cast(Buffer logits, DType from, DType to) const {
  if (from == to) return logits;
  const Tensor in = logits.tensor(from);
  Buffer out = make_buffer(*first_.device, MemoryCategory::activations, in.numel, to);
  first_.device->run(Cast{in, out.tensor(to)});
  return out;
}

Buffer Classifier::all_rows(const Workspace& work, Buffer d_first) const {
  const Buffer numbers = sequences(work);
  Buffer d_states = work.activation(size_);
  work.device->run(FillZero{d_states.tensor(work.dtype)});
  work.device->run(EmbeddingBackward{.d_out = first_.matrix(d_first, size_),
                                     .tokens = numbers.tensor(DType::int64),
                                     .d_table = rows_of_first(work, d_states, size_)});
  return d_states;
}

void Classifier::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, Buffer labels,
                         std::uint64_t seed, Tensor loss) {
  states_ = std::move(x);
  Buffer pooled;
  scopes_.forward(hooks, kPool, [&] {
    input_ = first_rows(work);
    if (input_dropout_) {
      if (input_dropout_->probability > 0) states_.reset();
      input_ = input_dropout_->forward(first_, hooks, seed_at(seed, Chance::classifier_input),
                                       std::move(input_));
    }
    pooled = dense_.forward(first_, hooks, input_);
  });
  scopes_.forward(hooks, kActivate,
                  [&] { activated_ = activation_.forward(first_, hooks, std::move(pooled)); });
  Buffer logits;
  scopes_.forward(hooks, kClassify, [&] {
    dropped_ =
        dropout_.forward_beside(first_, hooks, seed_at(seed, Chance::classifier), activated_);
    logits = out_.forward(first_, hooks, dropped_ ? dropped_ : activated_);
  });
  logits = cast(std::move(logits), first_.dtype, of_loss_.dtype);
  loss_.forward(of_loss_, std::move(logits), std::move(labels), loss);
}

Buffer Classifier::backward(const Workspace& work, ModuleHooks& hooks, double factor) {
  Buffer d_logits = cast(loss_.backward(of_loss_, factor), of_loss_.dtype, first_.dtype);
  Buffer d_activated;
  scopes_.backward(hooks, kClassify, [&] {
    d_activated = out_.backward(first_, hooks, d_logits, dropped_ ? dropped_ : activated_);
    d_logits.reset();
    dropped_.reset();
    Buffer d_whole = dropout_.backward(first_, hooks, d_activated);
    if (d_whole) d_activated = std::move(d_whole);
  });
  Buffer d_pooled;
  scopes_.backward(hooks, kActivate, [&] {
    d_pooled = activation_.backward(first_, hooks, std::move(d_activated), std::move(activated_));
  });
  Buffer d_first;
  scopes_.backward(hooks, kPool, [&] {
    d_first = dense_.backward(first_, hooks, d_pooled, input_);
    for (Buffer* used : {&input_, &states_, &d_pooled}) used->reset();
    if (!input_dropout_) return;
    Buffer d_whole = input_dropout_->backward(first_, hooks, d_first);
    if (d_whole) d_first = std::move(d_whole);
  });
  return all_rows(work, std::move(d_first));
}

}  // namespace dstune::bert
