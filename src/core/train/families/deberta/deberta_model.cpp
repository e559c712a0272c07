#include "core/train/families/deberta/deberta_model.hpp"

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
#include "core/train/families/deberta/deberta_attention.hpp"
#include "core/train/families/deberta/deberta_convolution.hpp"
#include "core/train/families/deberta/deberta_relative_table.hpp"
#include "core/train/nn/embedding.hpp"
#include "core/train/nn/losses/cross_entropy.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::deberta {
namespace {

constexpr bert::SequenceClassifierNames kClassifier{.head = "",
                                                    .pooler = "pooler",
                                                    .input_dropout = "pooler.dropout",
                                                    .dense = "pooler.dense",
                                                    .activation = "",
                                                    .dropout = "dropout",
                                                    .out = "classifier"};

/// Embeddings of words, and of positions and token types where the model has them, are added up,
/// projected to the hidden size, normed, masked and dropped out. Every token has type 0, and none
/// is masked.
class Embeddings {
 public:
  Embeddings(const ModelSpec& spec, const ModelNames& names, const std::string& name)
      : module_(names.module(name)),
        words_(names, name + ".word_embeddings"),
        norm_(names, name + ".LayerNorm", spec.layer_norm_epsilon),
        dropout_{names.module(name + ".dropout"), spec.embedding_dropout} {
    const auto has = [&](const char* part) { return names.find_module(name + part).has_value(); };
    if (has(".position_embeddings")) positions_.emplace(names, name + ".position_embeddings");
    if (has(".token_type_embeddings")) types_.emplace(names, name + ".token_type_embeddings");
    if (has(".embed_proj")) projection_.emplace(names, name + ".embed_proj");
  }

  std::size_t word_table() const { return words_.weight(); }
  /// @returns (M, h)
  Value operator()(Tape& on, const nn::StepInput& input) const {
    return run_module(on, module_, [&] { return embed(on, input); });
  }

 private:
  // The rows that are looked up are locals of the module's forward, which live until it returns;
  // where there are no positions, as many zeros stand for them.
  Value embed(Tape& on, const nn::StepInput& input) const {
    const Value words = words_.of_tokens(on, nn::tokens_of(input.tokens));
    Value embedded = words;
    Value places;
    if (positions_) {
      places = (*positions_)(on, nn::positions(on, on.context().sequence_length, 0));
      embedded = nn::add_broadcast(on, embedded, places);
    } else {
      places = new_like(on.device(), words);
      on.run(FillZero{places.tensor()});
    }
    Value types;
    if (types_) {
      const Value numbers = new_value(on.device(), DType::int64, 1, on.context().rows());
      on.run(FillZero{numbers.tensor()});
      types = (*types_)(on, numbers);
      embedded = nn::add(on, embedded, types);
    }
    if (projection_) embedded = (*projection_)(on, embedded);
    embedded = norm_(on, embedded);
    embedded = times_mask(on, embedded);
    return dropout_(on, embedded, bert::seed_at(input.seed, bert::Chance::embedding));
  }

  std::size_t module_;
  nn::Embedding words_;
  std::optional<nn::Embedding> positions_, types_;
  std::optional<nn::Linear> projection_;
  nn::LayerNorm norm_;
  nn::Dropout dropout_;
};

struct Block {
  Block(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
        const RelativeTable* table, std::size_t index, const std::string& name)
      : layer(spec, names, name, settings.common.activation),
        self(spec, settings, names, table, index, name + ".attention.self") {}

  bert::BertLayer layer;
  DisentangledAttention self;
};

class Deberta final : public nn::TapeModel {
 public:
  Deberta(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
          const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override {
    if (!lengths.sequences.empty()) throw std::invalid_argument("DeBERTa takes no padding here");
    TapeModel::set_lengths(lengths);
  }

 private:
  Value run(Tape& on, const nn::StepInput& input) override;
  Value encode(Tape& on, const Value& embedded, std::uint64_t seed) const;

  bert::Questions questions_;
  std::size_t root_, body_, encoder_;
  Embeddings embeddings_;
  std::optional<RelativeTable> table_;
  std::vector<Block> blocks_;
  std::optional<Convolution> convolution_;
  std::optional<bert::MaskedLmHead> masked_head_;
  std::optional<bert::SequenceClassifier> classifier_;
  DType loss_dtype_;
};

constexpr const char* kEncoder = "deberta.encoder";

Deberta::Deberta(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
                 const MicroBatch& batch, Device& device)
    : TapeModel(names, batch, device),
      questions_(spec, mask_token(spec)),
      root_(names.module("")),
      body_(names.module("deberta")),
      encoder_(names.module(kEncoder)),
      embeddings_(spec, names, "deberta.embeddings"),
      loss_dtype_(batch.dtype) {
  if (settings.relative_attention) table_.emplace(spec, settings, names, kEncoder);
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(spec.num_layers); ++layer) {
    blocks_.emplace_back(spec, settings, names, table_ ? &*table_ : nullptr, layer,
                         concat(kEncoder, ".layer.", layer));
  }
  if (settings.conv_kernel_size > 0) {
    convolution_.emplace(spec, settings, names, concat(kEncoder, ".conv"));
  }
  if (spec.task == Task::masked_lm) {
    masked_head_.emplace(spec, names, bert::masked_head_of(bert::Variant::bert),
                         settings.common.activation, embeddings_.word_table());
    return;
  }
  classifier_.emplace(spec, names, kClassifier, settings.pooler_activation, 0);
  if (settings.loss_in_fp32) loss_dtype_ = DType::fp32;
}

// The encoder gives all layers the mask of all pairs of tokens, of which each layer makes its own,
// the distances and the table. The convolution is no part of the first layer's checkpoint.
Value Deberta::encode(Tape& on, const Value& embedded, std::uint64_t seed) const {
  const BatchContext& of = on.context();
  const Value mask = new_value(on.device(), DType::fp32, of.rows(), of.sequence_length);
  on.run(FillConstant{mask.tensor(), 1});
  const Value distances = table_ ? table_->distances(on) : Value();
  Value table = table_ ? table_->for_encoder(on) : Value();
  const auto run_one = [this, mask, distances, seed](Tape& in, std::size_t index, Values values) {
    const Value x = values.front();
    const Block& own = blocks_[index];
    values = run_layer(in, own.layer.module(), index, std::move(values),
                       [&own, index, mask, distances, seed](Tape& inner, const Values& given) {
                         const auto self = [&](const Value& states) {
                           return own.self(inner, states, given[1], distances, seed);
                         };
                         return Values{own.layer(inner, index, given[0], self, seed), given[1]};
                       });
    if (index == 0 && convolution_) values[0] = (*convolution_)(in, x, values[0], seed);
    return values;
  };
  return run_layers(on, blocks_.size(), Values{embedded, std::move(table)}, run_one).front();
}

Value Deberta::run(Tape& on, const nn::StepInput& input) {
  const Value labels = questions_.labels(on, input);
  return run_module(on, root_, [&] {
    const Value states = run_module(on, body_, [&] {
      const Value embedded = embeddings_(on, input);
      return run_module(on, encoder_, embedded,
                        [&](const Value& x) { return encode(on, x, input.seed); });
    });
    const Value logits =
        masked_head_ ? (*masked_head_)(on, states) : (*classifier_)(on, states, input.seed);
    return nn::cross_entropy(on, nn::cast(on, logits, loss_dtype_), labels, loss_factor(),
                             input.loss);
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Deberta>(spec, settings_of(spec), ModelNames(parameters), batch, device);
}

}  // namespace dstune::deberta
