#include "core/train/families/deberta/deberta_model.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/fill.hpp"
#include "core/train/families/bert/bert_classifier.hpp"
#include "core/train/families/bert/bert_labels.hpp"
#include "core/train/families/bert/bert_masked_head.hpp"
#include "core/train/families/deberta/deberta_block.hpp"
#include "core/train/families/deberta/deberta_convolution.hpp"
#include "core/train/families/deberta/deberta_embeddings.hpp"
#include "core/train/families/deberta/deberta_names.hpp"
#include "core/train/families/deberta/deberta_relative_table.hpp"
#include "core/train/layers/layer_stack.hpp"
#include "core/train/layers/scopes.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

namespace {

class Deberta final : public Model {
 public:
  Deberta(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
          const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override;
  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) override;
  void backward(ModuleHooks& hooks, double factor) override;

 private:
  Buffer encode(ModuleHooks& hooks, Buffer states);
  bool is_convolved(std::size_t layer) const { return convolution_ && layer == 0; }
  /// The convolution is behind the first layer, in no checkpoint of a layer but within groups.
  bool convolves_again() const {
    const ActivationCheckpointing& checkpointing = work_.checkpointing;
    return checkpointing.unit == ActivationCheckpointing::Unit::group && checkpointing.count > 1;
  }
  Buffer run_layer(std::size_t layer, ModuleHooks& hooks, Buffer x, bool convolves);
  Buffer encode_backward(ModuleHooks& hooks, Buffer d_states);
  RelativeTable* table() { return table_ ? &*table_ : nullptr; }

  std::int64_t num_labels_;
  layers::Workspace work_;
  MaskTokens masking_;

  layers::Scopes scopes_;
  DebertaEmbeddings embeddings_;
  std::optional<RelativeTable> table_;
  layers::LayerStack<DebertaBlock> blocks_;
  std::optional<Convolution> convolution_;
  std::optional<bert::MaskedHead> masked_head_;
  std::optional<bert::Classifier> classifier_;

  // Of the micro-step that runs.
  std::uint64_t seed_ = 0;
  Buffer mask_;  ///< fp32
};

Deberta::Deberta(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
                 const MicroBatch& batch, Device& device)
    : num_labels_(settings.common.num_labels),
      work_(batch, device),
      masking_(bert::masking_of(spec, mask_token(spec), settings.common.pad_token)),
      scopes_(names, "", model_scopes()),
      embeddings_(spec, settings, names),
      blocks_(work_, names, spec.num_layers,
              [spec, settings](const ModelNames& all, std::int64_t index) {
                return DebertaBlock(spec, settings, all, index);
              }) {
  if (settings.relative_attention) table_.emplace(spec, settings, names);
  if (settings.conv_kernel_size > 0) convolution_.emplace(spec, settings, names);
  if (spec.task == Task::masked_lm) {
    masked_head_.emplace(spec, names, embeddings_.word_table(), kLegacyHead,
                         settings.common.activation, settings.embedding_size);
  } else {
    classifier_.emplace(spec, names, batch, device, kClassifier,
                        bert::ClassifierTraits{.activation = settings.pooler_activation,
                                               .num_labels = num_labels_,
                                               .loss_in_fp32 = settings.loss_in_fp32});
  }
}

void Deberta::set_lengths(const RowLengths& lengths) {
  if (!lengths.sequences.empty()) throw std::invalid_argument("DeBERTa takes no padding here");
  work_.take(lengths);
}

Buffer Deberta::encode(ModuleHooks& hooks, Buffer states) {
  // transformers' mask of all pairs of tokens, from which each layer makes its own.
  const std::int64_t pairs = work_.rows() * work_.sequence_length;
  mask_ = make_buffer(*work_.device, MemoryCategory::activations, pairs, DType::fp32);
  work_.device->run(FillConstant{mask_.tensor(DType::fp32), 1});
  if (table_) table_->forward(work_, hooks);
  states = blocks_.forward(hooks, std::move(states),
                           [&](std::size_t layer, ModuleHooks& inner, Buffer x) {
                             return run_layer(layer, inner, std::move(x), is_convolved(layer));
                           });
  if (blocks_.recomputes()) return states;
  mask_.reset();
  if (table_) table_->end_forward();
  return states;
}

Buffer Deberta::run_layer(std::size_t layer, ModuleHooks& hooks, Buffer x, bool convolves) {
  DebertaBlock& block = blocks_[layer];
  Buffer states = block.forward(work_, hooks, std::move(x), table(), seed_);
  if (!convolves) return states;
  return convolution_->forward(work_, hooks, block.input(), std::move(states), seed_);
}

void Deberta::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  seed_ = work_.seed = seed;
  Buffer labels = bert::mask_tokens(work_, masking_, tokens, seed_);
  if (classifier_) labels = bert::draw_labels(work_, num_labels_, seed_);
  Buffer states;
  scopes_.forward(hooks, bert::kEmbed,
                  [&] { states = embeddings_.forward(work_, hooks, tokens, seed_); });
  scopes_.forward(hooks, bert::kEncode, [&] { states = encode(hooks, std::move(states)); });
  scopes_.forward(hooks, bert::kHead, [&] {
    if (masked_head_) {
      masked_head_->forward(work_, hooks, std::move(states), std::move(labels), loss);
    } else {
      classifier_->forward(work_, hooks, std::move(states), std::move(labels), seed_, loss);
    }
  });
}

// The convolution's input is the first layer's: its gradient waits for that layer's.
Buffer Deberta::encode_backward(ModuleHooks& hooks, Buffer d_states) {
  Buffer d_convolved;
  const auto again = [&](std::size_t layer, ModuleHooks& inner, Buffer x) {
    return run_layer(layer, inner, std::move(x), is_convolved(layer) && convolves_again());
  };
  const auto back = [&](std::size_t layer, ModuleHooks& inner, Buffer d_out) {
    if (is_convolved(layer)) {
      Convolution::Gradients d = convolution_->backward(work_, hooks, std::move(d_out));
      d_out = std::move(d.residual);
      d_convolved = std::move(d.x);
    }
    return blocks_[layer].backward(work_, inner, std::move(d_out), table());
  };
  d_states = blocks_.backward(hooks, std::move(d_states), again, back);
  mask_.reset();
  if (table_) table_->backward(work_, hooks);
  if (d_convolved) {
    work_.device->run(Add{d_states.tensor(work_.dtype), d_convolved.tensor(work_.dtype)});
  }
  return d_states;
}

void Deberta::backward(ModuleHooks& hooks, double factor) {
  Buffer d_words;
  Buffer d_states;
  scopes_.backward(hooks, bert::kHead, [&] {
    d_states = masked_head_ ? masked_head_->backward(work_, hooks, factor, d_words)
                            : classifier_->backward(work_, hooks, factor);
  });
  scopes_.backward(hooks, bert::kEncode,
                   [&] { d_states = encode_backward(hooks, std::move(d_states)); });
  scopes_.backward(hooks, bert::kEmbed, [&] {
    embeddings_.backward(work_, hooks, std::move(d_states), std::move(d_words));
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Deberta>(spec, settings_of(spec), ModelNames(parameters), batch, device);
}

}  // namespace dstune::deberta
