#include "core/train/families/bert/bert_model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/train/families/bert/bert_modules.hpp"
#include "core/train/nn/attention/attention.hpp"
#include "core/train/nn/embedding.hpp"
#include "core/train/nn/losses/cross_entropy.hpp"

namespace dstune::bert {
namespace {

/// How a layer attends in one micro-step.
struct Attention {
  AttentionShape shape;
  Value mask;
};

/// The projections of self-attention.
struct Projections {
  nn::Linear query, key, value;

  Value operator()(Tape& on, const Value& x, const Attention& how) const {
    const Value q = query(on, x);
    const Value k = key(on, x);
    const Value v = value(on, x);
    return nn::attend(on, nn::SoftmaxType::model, how.shape, q, k, v, how.mask);
  }
};

/// BertLayer and RobertaLayer.
struct BertBlock {
  BertBlock(const ModelSpec& spec, const ModelNames& names, const std::string& name)
      : layer(spec, names, name, settings_of(spec).activation),
        module(layer.module()),
        projections{nn::Linear(names, name + ".attention.self.query"),
                    nn::Linear(names, name + ".attention.self.key"),
                    nn::Linear(names, name + ".attention.self.value")} {}

  Value operator()(Tape& on, std::size_t index, const Value& x, const Attention& how,
                   std::uint64_t seed) const {
    const auto self = [&](const Value& in) { return projections(on, in, how); };
    return layer(on, index, x, self, seed);
  }

  BertLayer layer;
  std::size_t module;
  Projections projections;
};

/// DistilBERT's TransformerBlock.
struct DistilbertBlock {
  DistilbertBlock(const ModelSpec& spec, const ModelNames& names, const std::string& name)
      : module(names.module(name)),
        attention(names.module(name + ".attention")),
        projections{nn::Linear(names, name + ".attention.q_lin"),
                    nn::Linear(names, name + ".attention.k_lin"),
                    nn::Linear(names, name + ".attention.v_lin")},
        out_lin(names, name + ".attention.out_lin"),
        sa_layer_norm(names, name + ".sa_layer_norm", spec.layer_norm_epsilon),
        ffn(names.module(name + ".ffn")),
        lin1(names, name + ".ffn.lin1"),
        activation(names.module(name + ".ffn.activation"), settings_of(spec).activation),
        lin2(names, name + ".ffn.lin2"),
        dropout{names.module(name + ".ffn.dropout"), spec.residual_dropout},
        output_layer_norm(names, name + ".output_layer_norm", spec.layer_norm_epsilon) {}

  // The value that is added is a local of the forward, which lives until the norm behind it has
  // run.
  Value operator()(Tape& on, std::size_t index, const Value& x, const Attention& how,
                   std::uint64_t seed) const {
    Value attended = run_module(
        on, attention, x, [&](const Value& in) { return out_lin(on, projections(on, in, how)); });
    attended = sa_layer_norm(on, nn::add(on, attended, x));
    const Value transformed = run_module(on, ffn, attended, [&](const Value& in) {
      const Value inner = lin2(on, activation(on, lin1(on, in)));
      return dropout(on, inner, seed_at(seed, index, Dropped::mlp));
    });
    return output_layer_norm(on, nn::add(on, transformed, attended));
  }

  std::size_t module;
  std::size_t attention;
  Projections projections;
  nn::Linear out_lin;
  nn::LayerNorm sa_layer_norm;
  std::size_t ffn;
  nn::Linear lin1;
  nn::ActivationFunction activation;
  nn::Linear lin2;
  nn::Dropout dropout;
  nn::LayerNorm output_layer_norm;
};

/// The embeddings of words, token types and positions are added up, normed and dropped out. Every
/// token has type 0, as where there is no second sentence. RoBERTa's positions depend on where
/// padding is, so that each token has a position of its own; the other models look positions up
/// once for all sequences.
class Embeddings {
 public:
  Embeddings(const ModelSpec& spec, const ModelNames& names, const std::string& name)
      : module_(names.module(name)),
        first_position_(first_position(spec)),
        has_position_per_token_(kin_of(spec) == Variant::roberta),
        words_(names, name + ".word_embeddings"),
        positions_(names, name + ".position_embeddings"),
        norm_(names, name + ".LayerNorm", spec.layer_norm_epsilon),
        dropout_{names.module(name + ".dropout"), spec.embedding_dropout} {
    if (names.find_module(name + ".token_type_embeddings")) {
      types_.emplace(names, name + ".token_type_embeddings");
    }
  }

  std::size_t word_table() const { return words_.weight(); }
  /// @returns (M, h)
  Value operator()(Tape& on, const nn::StepInput& input) const {
    return run_module(on, module_, [&] { return embed(on, input); });
  }

 private:
  // The rows that are looked up are locals of the module's forward, which live until it returns.
  Value embed(Tape& on, const nn::StepInput& input) const {
    const BatchContext& context = on.context();
    const Value positions = nn::positions(
        on, has_position_per_token_ ? context.rows() : context.sequence_length, first_position_);
    Value embedded = words_.of_tokens(on, nn::tokens_of(input.tokens));
    const Value words = embedded;
    Value types;
    if (types_) {
      const Value numbers = new_value(on.device(), DType::int64, 1, context.rows());
      on.run(FillZero{numbers.tensor()});
      types = (*types_)(on, numbers);
      embedded = nn::add(on, words, types);
    }
    const Value places = positions_(on, positions);
    embedded = nn::add_broadcast(on, embedded, places);
    embedded = norm_(on, embedded);
    return dropout_(on, embedded, seed_at(input.seed, Chance::embedding));
  }

  std::size_t module_;
  std::int64_t first_position_;
  bool has_position_per_token_;
  nn::Embedding words_;
  std::optional<nn::Embedding> types_;
  nn::Embedding positions_;
  nn::LayerNorm norm_;
  nn::Dropout dropout_;
};

template <class Block>
class Bert final : public nn::TapeModel {
 public:
  Bert(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override {
    if (lengths.is_packed) throw std::invalid_argument("BERT and its kin take no packed batches");
    TapeModel::set_lengths(lengths);
  }

 private:
  Value run(Tape& on, const nn::StepInput& input) override;
  Value body(Tape& on, const nn::StepInput& input) const;
  Value logits(Tape& on, const Value& states, const nn::StepInput& input) const;
  AttentionShape shape(std::size_t layer, std::uint64_t seed) const;

  ModelSpec spec_;
  Variant kin_;
  Questions questions_;
  std::size_t root_, body_, encoder_;
  Embeddings embeddings_;
  std::vector<Block> blocks_;
  std::optional<MaskedLmHead> masked_head_;
  std::optional<SequenceClassifier> classifier_;
  std::optional<std::size_t> loss_module_;
};

std::string encoder_of(const ModelSpec& spec) {
  return concat(spec.family, kin_of(spec) == Variant::distilbert ? ".transformer" : ".encoder");
}

// RoBERTa's head of masked tokens uses gelu whatever the config says.
template <class Block>
Bert<Block>::Bert(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch,
                  Device& device)
    : TapeModel(names, batch, device),
      spec_(spec),
      kin_(kin_of(spec)),
      questions_(spec, mask_token(spec)),
      root_(names.module("")),
      body_(names.module(spec.family)),
      encoder_(names.module(encoder_of(spec))),
      embeddings_(spec, names, spec.family + ".embeddings") {
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    blocks_.emplace_back(spec, names, concat(encoder_of(spec), ".layer.", layer));
  }
  const bool is_roberta = kin_ == Variant::roberta;
  if (spec.task == Task::masked_lm) {
    masked_head_.emplace(spec, names, masked_head_of(kin_),
                         is_roberta ? "gelu" : settings_of(spec).activation,
                         embeddings_.word_table());
    loss_module_ = names.find_module("mlm_loss_fct");  // DistilBERT's is a module
  } else {
    classifier_.emplace(spec, names, classifier_of(kin_),
                        kin_ == Variant::distilbert ? "relu" : "tanh",
                        is_roberta ? spec.classifier_dropout : 0);
  }
}

template <class Block>
AttentionShape Bert<Block>::shape(std::size_t layer, std::uint64_t seed) const {
  return {.batch = context().size,
          .sequence = context().sequence_length,
          .heads = spec_.num_heads,
          .kv_heads = spec_.num_heads,
          .head_size = spec_.head_size(),
          .causal = false,
          .dropout = spec_.attention_dropout,
          .seed = seed_at(seed, layer, Dropped::attention)};
}

// The embeddings and the mask are locals of BertModel.forward, within which the pooler runs too.
template <class Block>
Value Bert<Block>::body(Tape& on, const nn::StepInput& input) const {
  const Value embedded = embeddings_(on, input);
  const Value mask = nn::attention_mask(on, shape(0, input.seed));
  const auto run_one = [this, mask, seed = input.seed](Tape& in, std::size_t layer,
                                                       const Value& x) {
    const Block& own = blocks_[layer];
    return run_layer(in, own.module, layer, x,
                     [this, &own, layer, mask, seed](Tape& inner, const Value& hidden) {
                       return own(inner, layer, hidden, {shape(layer, seed), mask}, seed);
                     });
  };
  const auto encode = [&](Value x) {
    return run_layers(on, blocks_.size(), std::move(x), run_one);
  };
  const Passed passed = kin_ == Variant::distilbert ? Passed::by_keyword : Passed::by_place;
  const Value states = run_module(on, encoder_, embedded, encode, passed);
  const bool has_pooler = classifier_ && kin_ == Variant::bert;
  return has_pooler ? classifier_->pool(on, states, input.seed) : states;
}

template <class Block>
Value Bert<Block>::logits(Tape& on, const Value& states, const nn::StepInput& input) const {
  if (masked_head_) return (*masked_head_)(on, states);
  if (kin_ == Variant::bert) return classifier_->classify(on, states, input.seed);
  return (*classifier_)(on, states, input.seed);
}

template <class Block>
Value Bert<Block>::run(Tape& on, const nn::StepInput& input) {
  const Value labels = questions_.labels(on, input);
  return run_module(on, root_, [&] {
    const Value states = run_module(on, body_, [&] { return body(on, input); });
    return run_module(on, loss_module_, logits(on, states, input), [&](const Value& scores) {
      return nn::cross_entropy(on, scores, labels, loss_factor(), input.loss);
    });
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  const ModelNames names(parameters);
  if (kin_of(spec) == Variant::distilbert) {
    return std::make_unique<Bert<DistilbertBlock>>(spec, names, batch, device);
  }
  return std::make_unique<Bert<BertBlock>>(spec, names, batch, device);
}

}  // namespace dstune::bert
