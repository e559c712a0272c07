#include "core/train/families/bert/bert_modules.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/rows.hpp"

namespace dstune::bert {
namespace {

constexpr MaskedLmHeadNames kBertMaskedHead{
    .outer = "cls",
    .inner = "cls.predictions",
    .transform = "cls.predictions.transform",
    .dense = "cls.predictions.transform.dense",
    .activation = "cls.predictions.transform.transform_act_fn",
    .norm = "cls.predictions.transform.LayerNorm",
    .decoder = "cls.predictions.decoder",
    .bias = "cls.predictions.bias",
};

constexpr MaskedLmHeadNames kRobertaMaskedHead{.outer = "lm_head",
                                               .inner = "",
                                               .transform = "",
                                               .dense = "lm_head.dense",
                                               .activation = "",
                                               .norm = "lm_head.layer_norm",
                                               .decoder = "lm_head.decoder",
                                               .bias = "lm_head.bias"};
constexpr MaskedLmHeadNames kDistilbertMaskedHead{.outer = "",
                                                  .inner = "",
                                                  .transform = "",
                                                  .dense = "vocab_transform",
                                                  .activation = "activation",
                                                  .norm = "vocab_layer_norm",
                                                  .decoder = "vocab_projector",
                                                  .bias = "vocab_projector.bias"};
constexpr SequenceClassifierNames kBertClassifier{.head = "",
                                                  .pooler = "bert.pooler",
                                                  .input_dropout = "",
                                                  .dense = "bert.pooler.dense",
                                                  .activation = "bert.pooler.activation",
                                                  .dropout = "dropout",
                                                  .out = "classifier"};
constexpr SequenceClassifierNames kRobertaClassifier{.head = "classifier",
                                                     .pooler = "",
                                                     .input_dropout = "classifier.dropout",
                                                     .dense = "classifier.dense",
                                                     .activation = "",
                                                     .dropout = "classifier.dropout",
                                                     .out = "classifier.out_proj"};
constexpr SequenceClassifierNames kDistilbertClassifier{.head = "",
                                                        .pooler = "",
                                                        .input_dropout = "",
                                                        .dense = "pre_classifier",
                                                        .activation = "",
                                                        .dropout = "dropout",
                                                        .out = "classifier"};

std::optional<std::size_t> module_if(const ModelNames& names, std::string_view name) {
  return name.empty() ? std::nullopt : std::optional(names.module(name));
}

Matrix first_rows(Matrix all, std::int64_t sequence) {
  all.rows /= sequence;
  all.stride *= sequence;
  return all;
}

/// hidden_states[:, 0], as a view
Value first_tokens(Tape& on, const Value& states) {
  const std::int64_t sequence = on.context().sequence_length;
  Value first = states;
  first.matrix = first_rows(states.matrix, sequence);
  if (!on.records(states.needs_gradient())) return first;
  return on.record(std::move(first), [sequence, node = states.node](Tape& back, const Value& d) {
    Value d_states =
        new_value(back.device(), d.matrix.dtype, d.matrix.rows * sequence, d.matrix.cols);
    back.run(FillZero{d_states.tensor()});
    back.run(CopyRows{d.matrix, first_rows(d_states.matrix, sequence)});
    back.give(node, std::move(d_states));
  });
}

nn::Product decoder(const ModelNames& names, const MaskedLmHeadNames& called, std::size_t table) {
  const auto& shape = names.shape(table);
  return {.module = names.module(called.decoder),
          .weight = table,
          .bias = names.tensor(called.bias),
          .in = shape.at(1),
          .out = shape.at(0)};
}

}  // namespace

Output::Output(const ModelSpec& spec, const ModelNames& names, const std::string& name)
    : module_(names.module(name)),
      dense_(names, name + ".dense"),
      dropout_{names.module(name + ".dropout"), spec.residual_dropout},
      norm_(names, name + ".LayerNorm", spec.layer_norm_epsilon) {}

// The value that is added and normed is a local: three tensors exist at once, with the sum and its
// norm, which is the peak where a checkpoint runs again.
Value Output::operator()(Tape& on, const Value& x, const Value& residual,
                         std::uint64_t seed) const {
  return run_module(on, module_, x, [&](const Value& in) {
    Value states = dense_(on, in);
    states = dropout_(on, states, seed);
    return norm_(on, nn::add(on, states, residual));
  });
}

BertLayer::BertLayer(const ModelSpec& spec, const ModelNames& names, const std::string& name,
                     const std::string& activation)
    : module_(names.module(name)),
      attention_(names.module(name + ".attention")),
      self_(names.module(name + ".attention.self")),
      attention_output_(spec, names, name + ".attention.output"),
      intermediate_(names.module(name + ".intermediate")),
      inner_(names, name + ".intermediate.dense"),
      activation_(names.module(name + ".intermediate.intermediate_act_fn"), activation),
      output_(spec, names, name + ".output") {}

Value BertLayer::operator()(Tape& on, std::size_t layer, const Value& x,
                            const std::function<Value(const Value&)>& self,
                            std::uint64_t seed) const {
  const Value attended = run_module(on, attention_, x, [&](const Value& in) {
    const Value context = run_module(on, self_, in, self);
    return attention_output_(on, context, in, seed_at(seed, layer, Dropped::out));
  });
  const Value inner = run_module(on, intermediate_, attended,
                                 [&](const Value& in) { return activation_(on, inner_(on, in)); });
  return output_(on, inner, attended, seed_at(seed, layer, Dropped::mlp));
}

const MaskedLmHeadNames& masked_head_of(Variant kin) {
  if (kin == Variant::roberta) return kRobertaMaskedHead;
  return kin == Variant::distilbert ? kDistilbertMaskedHead : kBertMaskedHead;
}

const SequenceClassifierNames& classifier_of(Variant kin) {
  if (kin == Variant::roberta) return kRobertaClassifier;
  return kin == Variant::distilbert ? kDistilbertClassifier : kBertClassifier;
}

MaskedLmHead::MaskedLmHead(const ModelSpec& spec, const ModelNames& names,
                           const MaskedLmHeadNames& called, const std::string& activation,
                           std::size_t word_table)
    : outer_(module_if(names, called.outer)),
      inner_(module_if(names, called.inner)),
      transform_(module_if(names, called.transform)),
      dense_(names, std::string(called.dense)),
      activation_(module_if(names, called.activation), activation),
      norm_(names, std::string(called.norm), spec.layer_norm_epsilon),
      decoder_(decoder(names, called, word_table)) {}

Value MaskedLmHead::operator()(Tape& on, const Value& states) const {
  const auto transform = [&](const Value& x) { return norm_(on, activation_(on, dense_(on, x))); };
  const auto predict = [&](const Value& x) {
    return decoder_(on, run_module(on, transform_, x, transform));
  };
  return run_module(on, outer_, states,
                    [&](const Value& x) { return run_module(on, inner_, x, predict); });
}

SequenceClassifier::SequenceClassifier(const ModelSpec& spec, const ModelNames& names,
                                       const SequenceClassifierNames& called,
                                       const std::string& activation, double input_dropout)
    : head_(module_if(names, called.head)),
      pooler_(module_if(names, called.pooler)),
      input_dropout_{module_if(names, called.input_dropout), input_dropout},
      dense_(names, std::string(called.dense), true),
      activation_(module_if(names, called.activation), activation),
      dropout_{names.module(called.dropout), spec.classifier_dropout},
      out_(names, std::string(called.out), true) {}

Value SequenceClassifier::pool(Tape& on, const Value& states, std::uint64_t seed) const {
  return run_module(on, pooler_, states, [&](const Value& x) {
    Value first = input_dropout_(on, first_tokens(on, x), seed_at(seed, Chance::classifier_input));
    return activation_(on, dense_(on, std::move(first)));
  });
}

Value SequenceClassifier::classify(Tape& on, const Value& pooled, std::uint64_t seed) const {
  return out_(on, dropout_(on, pooled, seed_at(seed, Chance::classifier)));
}

Value SequenceClassifier::operator()(Tape& on, const Value& states, std::uint64_t seed) const {
  return run_module(on, head_, states,
                    [&](const Value& x) { return classify(on, pool(on, x, seed), seed); });
}

Questions::Questions(const ModelSpec& spec, std::int64_t mask_token) {
  constexpr double kMasked = 0.15;  // DataCollatorForLanguageModeling's default
  constexpr std::int64_t kNoPadding = -1;
  const Settings settings = settings_of(spec);
  const bool asks_for_words = spec.task == Task::masked_lm;
  masking_ = {.probability = asks_for_words ? kMasked : 0,
              .mask_token = mask_token,
              .pad_token = settings.pad_token.value_or(kNoPadding),
              .vocab_size = spec.vocab_size};
  classes_ = asks_for_words ? 0 : settings.num_labels;
}

// Tokens without a next one have no labels, and so padding has none.
Value Questions::labels(Tape& on, const nn::StepInput& input) const {
  const BatchContext& context = on.context();
  Value labels = new_value(on.device(), DType::int64, 1, context.rows());
  MaskTokens masking = masking_;
  masking.tokens = masking.inputs = input.tokens;
  masking.labels = labels.tensor();
  masking.seed = seed_at(input.seed, Chance::batch);
  on.run(masking);
  for (const TokenSpan& padding : context.padding()) {
    const Tensor none = masking.labels.slice(padding.begin, padding.length);
    on.run(NextTokens{.tokens = none, .sequence = 1, .labels = none});
  }
  if (classes_ == 0) return labels;
  labels = new_value(on.device(), DType::int64, 1, context.size);
  on.run(FillTokens{.out = labels.tensor(), .vocab = classes_, .seed = masking.seed});
  return labels;
}

}  // namespace dstune::bert
